# shellcheck shell=bash
# Debian systems to try the installation on; deploy/arm64/test.sh and deploy/systemd/test.sh begin with `stand_apart`
# and `open_cache`. They set SUITE and MIRROR, the Debian release and where its packages come from.

stand_apart() {  # SCRIPT VARIABLE,...: as root, in namespaces with which mounts and processes end
    local script
    script=$(realpath "$1")
    if [ "$(id -u)" -ne 0 ]; then
        exec sudo --preserve-env="PYTHON,PYTHONPATH,$2" "$script"
    fi
    if [ -z "${STANDS_APART:-}" ]; then
        STANDS_APART=yes exec unshare --mount --pid --fork --mount-proc --kill-child "$script"
    fi
    trap report_failure EXIT
}

open_cache() {  # DIR: a folder that stays between runs
    cache=$1
    base=$cache/base        # the Debian system as it was made, kept between runs
    machine=$cache/machine  # a copy of it, made anew by each run and left to be looked at
    kiosk=$cache/kiosk      # what the machine is given
    log=$cache/log          # everything that was said
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock --nonblock 9 || { echo "another run uses $cache" >&2; exit 1; }
    : >"$log"
}

report_failure() {
    local status=$?
    [ "$status" -eq 0 ] || echo "failed in \"${title:-setting up}\"; all that was said: ${log:-}" >&2
}

count_ticks() {  # processor time of this shell's finished children, into `ticks`
    local stat
    read -r -a stat </proc/self/stat
    ticks=$((stat[15] + stat[16]))
}

step() {  # TITLE COMMAND...: runs it, shows and logs what it says, and tells the seconds by clock and by processor
    title=$1
    shift
    local began=$EPOCHREALTIME before
    count_ticks
    before=$ticks
    printf '%s\n' "$title"
    "$@" 2>&1 | tee -a "$log" | sed -u 's/^/    /'
    count_ticks
    awk -v a="$began" -v b="$EPOCHREALTIME" -v ticks=$((ticks - before)) -v second="$(getconf CLK_TCK)" \
        'BEGIN { printf "    %.1f s, processor %.1f s\n", b - a, ticks / second }'
}

make_base() {  # ARCHITECTURE PACKAGE,...
    if [ -d "$base" ]; then
        echo "kept from an earlier run"
        return
    fi
    rm -rf "$base.new"
    debootstrap --arch="$1" --foreign --variant=minbase --include="$2" "$SUITE" "$base.new" "$MIRROR" >>"$log"
    # The system can be made again; waiting for the disk after every package helps nobody.
    mkdir -p "$base.new/etc/dpkg/dpkg.cfg.d"
    echo force-unsafe-io >"$base.new/etc/dpkg/dpkg.cfg.d/fast"
    chroot "$base.new" /debootstrap/debootstrap --second-stage >>"$log"
    rm -rf "$base.new/etc/dpkg/dpkg.cfg.d/fast" "$base.new"/var/cache/apt/archives/*.deb
    mv "$base.new" "$base"
}

collect_kiosk() {  # MACHINE
    local version
    version=$(chroot "$base" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    deploy/pi/collect.sh --machine "$1" --python "$version" "$kiosk" 2>>"$log"
    echo "$(find "$kiosk/wheels" -name '*.whl' | wc -l) wheels for Python $version, $(du -sh "$kiosk" | cut -f1) in all"
}

copy_base() {
    rm -rf --one-file-system "$machine"
    cp -a "$base" "$machine"
}

must_have_changed_nothing() {  # FILE: what the installer said
    grep -q '^Nothing had to be changed.$' "$1" || { echo "the second installation changed something" && exit 1; }
}
