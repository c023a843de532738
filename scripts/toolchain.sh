# Finds a Rust toolchain that is new enough. Sourced by scripts/setup, scripts/cargo and
# scripts/guest-arm64.
# shellcheck shell=bash

# The first minor version of Rust 1 that builds this workspace: rust-version in Cargo.toml.
rust_needed() {
    sed -n 's/^rust-version = "1\.\([0-9]*\)"$/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml"
}

# minor PROGRAM: the minor version of a Rust program, 0 if it is none or does not run.
# A rustup proxy without a toolchain is such a program: it exists and does not run.
minor() {
    local text
    text=$("$1" --version 2>/dev/null) || text=
    [[ $text =~ ^(cargo|rustc)\ 1\.([0-9]+)\. ]] && echo "${BASH_REMATCH[2]}" || echo 0
}

# Every cargo of this machine, the preferred ones first: the one in $CARGO, those on the path,
# rustup's, and those that Ubuntu and others install beside each other as cargo-1.85 and so on,
# the newest first.
every_cargo() {
    local -a dirs
    IFS=: read -ra dirs <<<"$PATH:$HOME/.cargo/bin:/usr/local/bin:/usr/bin"
    if [[ -n ${CARGO:-} ]]; then command -v "$CARGO"; fi
    local dir
    for dir in "${dirs[@]}"; do
        if [[ -x $dir/cargo ]]; then echo "$dir/cargo"; fi
    done
    for dir in "${dirs[@]}"; do
        printf '%s\n' "$dir"/cargo-1.*
    done | grep -E '/cargo-1\.[0-9]+$' | sort -t. -k2,2nr
}

# Sets and exports CARGO, RUSTC and RUSTDOC to a toolchain that is new enough, or fails.
# The compiler is the one beside cargo: another one on the path may be of another age.
find_toolchain() {
    local needed cargo suffix
    needed=$(rust_needed)
    while read -r cargo; do
        suffix=${cargo##*/cargo}
        local dir=${cargo%/*}
        if (($(minor "$cargo") >= needed)) && (($(minor "$dir/rustc$suffix") >= needed)); then
            export CARGO=$cargo RUSTC=$dir/rustc$suffix RUSTDOC=$dir/rustdoc$suffix
            return
        fi
    done < <(every_cargo)
    return 1
}

# links_with FLAG…: whether a program can be linked so, and runs.
links_with() {
    local dir rc=0
    dir=$(mktemp -d)
    printf 'int main(void) { return 0; }\n' >"$dir/try.c"
    { cc "$@" -fPIE -o "$dir/try" "$dir/try.c" && "$dir/try"; } 2>/dev/null || rc=1
    rm -r "$dir"
    return $rc
}

# What builds for arm64.
ARM64_TARGET=aarch64-unknown-linux-gnu
# shellcheck disable=SC2034
ARM64_LINKER=aarch64-linux-gnu-gcc

# has_arm64 RUSTC: whether a compiler has the standard library for arm64.
has_arm64() {
    compgen -G "$("$1" --print sysroot)/lib/rustlib/$ARM64_TARGET/lib/libstd-*.rlib" >/dev/null
}

# The Rust compiler that the distribution installed, if it is new enough: its package, that
# package's version, and the program.
distribution_rustc() {
    command -v dpkg-query >/dev/null || return 1
    local program package version
    for program in /usr/bin/rustc /usr/bin/rustc-1.*; do
        if (($(minor "$program") < $(rust_needed))); then continue; fi
        # The program may be a link to one that lies where its version has a folder.
        package=$(dpkg-query -S "$program" "$(readlink -f "$program")" 2>/dev/null | sed -n '1s/:.*//p') || true
        if [[ -n $package ]] && version=$(dpkg-query -W -f '${Version}' "$package"); then
            echo "$package $version $program"
            return
        fi
    done
    return 1
}
