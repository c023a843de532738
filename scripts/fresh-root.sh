# Fresh roots of distributions, for scripts that source this. They set $fresh, the folder of all roots.

# bare_root SUITE MIRROR KEYS COMPONENTS PACKAGES: a root of that suite in $fresh/SUITE, with these
# packages. Prints why there is none, and fails.
bare_root() {
    local suite=$1 mirror=$2 keys=$3 components=$4 packages=$5 root=$fresh/$1
    if [[ ! -e $keys ]]; then
        echo "the keys of its archive are missing: $keys"
        return 1
    fi
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    if ! debootstrap --variant=minbase --components="$components" --keyring="$keys" \
        --include="$packages,ca-certificates" "$suite" "$root" "$mirror" >"$fresh/$suite.log" 2>&1; then
        echo "debootstrap failed: $(tail -n 1 "$fresh/$suite.log") ($fresh/$suite.log)"
        return 1
    fi
    # Networks with a certificate authority of their own have it here.
    if [[ -d /usr/local/share/ca-certificates ]]; then
        cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
    fi
    cp /etc/resolv.conf "$root/etc/resolv.conf"
}

# run_in ROOT COMMAND: runs it in bash as root. Mounts are made in a namespace of their own, and so are
# gone with the command whatever becomes of it.
run_in() {
    unshare --mount --propagation private bash -euc '
        for folder in proc sys dev; do mount --rbind "/$folder" "$1/$folder"; done
        exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C.UTF-8 \
            ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
            chroot "$1" bash -ec "update-ca-certificates >/dev/null; $2"
    ' - "$1" "$2"
}
