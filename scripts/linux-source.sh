# The source of a kernel, and small kernels built of it, for scripts that source this and messages.sh. They set
# $work, the folder that kernels are built in.

# What is unpacked serves all of them.
sources=$PWD/target/linux-source

# Prints the folder of the source: $LINUX_SOURCE, or what apt has as linux-source (Debian), fetched and
# unpacked.
find_source() {
    local package found
    if [[ -n ${LINUX_SOURCE:-} ]]; then
        echo "$LINUX_SOURCE"
        return
    fi
    mkdir -p "$sources"
    found=$(find "$sources" -maxdepth 1 -type d -name 'linux-source-*' -print -quit)
    if [[ -z $found ]]; then
        package=$(apt-cache search --names-only '^linux-source-[0-9.]+$' | cut -d' ' -f1 | sort -V | tail -1 || true)
        [[ -n $package ]] || fail "apt has no source of a kernel" "name one: LINUX_SOURCE=linux $0"
        say "fetching $package"
        rm -f "$sources/$package"_*.deb
        (cd "$sources" && apt-get -q -o APT::Sandbox::User= download "$package" >&2)
        rm -rf "$sources/unpacking"
        mkdir "$sources/unpacking"
        dpkg-deb --fsys-tarfile "$sources/$package"_*.deb | tar -xO --wildcards "./usr/src/$package.tar.*" |
            tar -C "$sources/unpacking" -xJ
        found=$sources/$package
        mv "$sources/unpacking/$package" "$found"
        rm -r "$sources/unpacking" "$sources/$package"_*.deb
    fi
    echo "$found"
}

need_build_tools() {
    local -a missing=()
    local tool
    for tool in make gcc flex bison bc "$@"; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    ((${#missing[@]} == 0)) || fail "${missing[*]}: not installed" \
        "on Debian and Ubuntu: apt-get install build-essential flex bison bc dwarves libelf-dev libssl-dev"
}

# kernel ARGUMENT…: make, for the kernel in $work/build of the source $source.
kernel() {
    nice -n 19 make -C "$source" O="$work/build" -j"${JOBS:-$(nproc)}" "$@" >"$work/build.log" 2>&1 ||
        fail "the kernel cannot be built" "see $work/build.log"
}

# build_kernel FRAGMENT: a kernel of a tiny configuration with the options in that file, all of which must
# hold: $work/bzImage and $work/config.
build_kernel() {
    local fragment=$1 option
    # A build time in it would make each build another kernel.
    export KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=lab
    mkdir -p "$work/build"
    kernel tinyconfig
    (cd "$work/build" && "$source/scripts/kconfig/merge_config.sh" -m .config "$fragment" >/dev/null)
    kernel olddefconfig
    while read -r option; do
        grep -qx "$option" "$work/build/.config" || fail "$option does not hold in this source" "take another: LINUX_SOURCE"
    done <"$fragment"
    say "building $source, see $work/build.log"
    kernel bzImage
    cp "$work/build/arch/x86/boot/bzImage" "$work/bzImage"
    cp "$work/build/.config" "$work/config"
    say "$work/bzImage"
}
