# How scripts that source this end: at the first error, also where it is within $(…), and with a message that names
# the remedy.
# shellcheck shell=bash
shopt -s inherit_errexit

# The exit code of fail().
failure=1

say() { echo "${0##*/}: $*" >&2; }

# fail MESSAGE REMEDY…
fail() {
    say "$1"
    shift
    printf '  → %s\n' "$@" >&2
    exit "$failure"
}
