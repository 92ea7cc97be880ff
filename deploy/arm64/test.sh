#!/usr/bin/env bash
# Plays a Raspberry Pi: an emulated arm64 Debian without network, on which deploy/pi/install.sh installs the edge from a
# folder of aarch64 wheels, and which must read the samples as this machine does. `make test-arm64` runs it.
#
#   SUITE=bookworm   the Debian release: bookworm (Python 3.11) or trixie (3.13)
#   CPU=cortex-a72   the processor: cortex-a72 is the Raspberry Pi 4's, cortex-a76 the 5's
#   BUNDLE=DIR       built models (`docferry models build DIR`) in place of the originals; differences do not count then
#   SAMPLES=NAME...  which of shared/docferry/samples are read (default: thermal_receipt); a page takes minutes there
#   ONLINE=1         packages and models come from the index that pip uses on this machine
#   MIRROR=URL       where the Debian packages come from
#
# Everything stands in .cache/arm64/$SUITE; deploy/machine.sh says what.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$project"
# shellcheck source=deploy/machine.sh
. deploy/machine.sh
SUITE=${SUITE:-bookworm} BUNDLE=${BUNDLE:-} SAMPLES=${SAMPLES:-thermal_receipt} ONLINE=${ONLINE:-}
MIRROR=${MIRROR:-http://deb.debian.org/debian} PYTHON=${PYTHON:-.venv/bin/python} CPU=${CPU:-cortex-a72}
export PYTHON QEMU_CPU=$CPU
stand_apart "${BASH_SOURCE[0]}" SUITE,CPU,BUNDLE,SAMPLES,ONLINE,MIRROR
open_cache "$project/.cache/arm64/$SUITE"
for_the_agent=chinese_receipt.jpg
case $CPU in
    cortex-a72 | cortex-a76) ;;
    *) echo "test-arm64: CPU is cortex-a72 or cortex-a76, not $CPU" >&2 && exit 2 ;;
esac

register_emulator() {
    local formats=/proc/sys/fs/binfmt_misc magic mask
    [ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
    [ ! -e $formats/qemu-aarch64 ] || return 0
    magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    # F: the kernel opens the emulator now, so that it need not exist in the other root.
    printf '%s' ":qemu-aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >$formats/register
}

make_machine() {
    copy_base
    mount -t proc proc "$machine/proc"
    mount -t sysfs -o ro sysfs "$machine/sys"
    # The emulator plays the processor, not what the kernel says of it, and onnxruntime goes by that.
    describe_processor >"$cache/cpuinfo"
    mount --bind "$cache/cpuinfo" "$machine/proc/cpuinfo"
    mount -t tmpfs tmpfs "$machine/tmp"
    mount -t tmpfs tmpfs "$machine/dev/shm"
    bring "$kiosk" /media/kiosk
    bring "$BUNDLE" /media/bundle
    bring shared/docferry/samples /media/samples
    bring deploy/arm64 /media/test
    [ -n "$ONLINE" ] || return 0
    cp --dereference /etc/resolv.conf "$machine/etc/resolv.conf"
    # Whom this machine trusts, that one may trust too: there may be a proxy between them and the index.
    cp --dereference /etc/ssl/certs/ca-certificates.crt "$machine/etc/ssl/certs/ca-certificates.crt"
}

describe_processor() {  # as /proc/cpuinfo does on the Pi
    local part=0xd08 revision=3 features="fp asimd evtstrm crc32 cpuid" core
    if [ "$CPU" = cortex-a76 ]; then
        part=0xd0b revision=1
        features="fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
    fi
    for ((core = 0; core < $(nproc); core++)); do
        printf 'processor\t: %d\nBogoMIPS\t: 108.00\nFeatures\t: %s\n' $core "$features"
        printf 'CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n'
        printf 'CPU part\t: %s\nCPU revision\t: %d\n\n' $part $revision
    done
}

bring() {  # DIR PLACE: a folder of this machine, read-only, like a USB stick
    [ -n "$1" ] || return 0
    mkdir -p "$machine$2"
    mount --bind "$1" "$machine$2"
    mount -o remount,bind,ro "$machine$2"
}

on_machine() {  # COMMAND...: as root on the machine, with nothing of this one's environment; without network by default
    local isolated=(unshare --net) given=() name
    if [ -n "$ONLINE" ]; then
        isolated=()
        for name in PIP_INDEX_URL http_proxy https_proxy no_proxy; do
            [ -z "${!name:-}" ] || given+=("$name=${!name}")
        done
        given+=(PIP_CERT=/etc/ssl/certs/ca-certificates.crt)
    fi
    "${isolated[@]}" chroot "$machine" /usr/bin/env -i HOME=/root LANG=C.UTF-8 QEMU_CPU="$CPU" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${given[@]}" "$@"
}

install_there() {  # with the arguments that a person would give
    local from=(--wheels /media/kiosk/wheels --bundle /media/kiosk/models)
    [ -z "$ONLINE" ] || from=(--wheel "/media/kiosk/wheels/$(cd "$kiosk/wheels" && echo docferry-*.whl)")
    [ -z "$BUNDLE" ] || from+=(--bundle /media/bundle)
    on_machine /media/kiosk/pi/install.sh "${from[@]}"
}

install_again() {
    install_there | tee "$cache/again"
    must_have_changed_nothing "$cache/again"
}

in_the_unit() { sed -n "s/^$1=//p" "$machine/etc/systemd/system/docferry-edge.service"; }  # KEY: its values

as_the_unit() {  # COMMAND...: as the unit's user, with the unit's environment
    # Word splitting is what systemd does with these lines, too.
    # shellcheck disable=SC2046
    on_machine setpriv --reuid docferry --regid docferry --init-groups env $(in_the_unit Environment) "$@"
}

list_samples() {  # FOLDER
    local name
    for name in $SAMPLES; do echo "$1/$name.jpg"; done
}

read_here() {
    local models=(edge --from "$kiosk/models")
    [ -z "$BUNDLE" ] || models=(--from "$BUNDLE")
    export DOCFERRY_CACHE=$cache/models
    rm -rf "$DOCFERRY_CACHE"
    "$PYTHON" -m docferry.cli models pull "${models[@]}" >>"$log"
    list_samples shared/docferry/samples | xargs "$PYTHON" -m docferry.cli read --json >"$cache/here.jsonl"
    "$PYTHON" -m docferry.cli read --json "shared/docferry/samples/$for_the_agent" >"$cache/here-agent.jsonl"
}

compare() {  # HERE THERE: with built models differences are shown and not judged, as INT8 rounds in far larger steps
    local status=0
    "$PYTHON" deploy/arm64/compare.py "$@" || status=$?
    [ $status -eq 0 ] || { [ $status -eq 3 ] && [ -n "$BUNDLE" ]; }
}

read_there() {
    as_the_unit /opt/docferry/bin/docferry models verify
    # shellcheck disable=SC2046
    as_the_unit /opt/docferry/bin/docferry read --json $(list_samples /media/samples) >"$cache/there.jsonl"
    compare "$cache/here.jsonl" "$cache/there.jsonl"
}

run_agent_there() {
    # The watchdog's minute is a Pi's; an emulated one on a busy machine takes longer for a page and is not stuck.
    # shellcheck disable=SC2046
    as_the_unit env DOCFERRY_READ_DEADLINE_S=3600 /opt/docferry/bin/python /media/test/agent_smoke.py "/media/samples/$for_the_agent" /tmp/answer.jsonl \
        $(in_the_unit ExecStart) --json
    cp "$machine/tmp/answer.jsonl" "$cache/there-agent.jsonl"
    compare "$cache/here-agent.jsonl" "$cache/there-agent.jsonl"
}

uninstall_there() {
    on_machine /media/kiosk/pi/install.sh --uninstall
    [ -e "$machine/var/lib/docferry/edge/outbox.sqlite" ] || { echo "the documents are gone"; exit 1; }
    [ ! -e "$machine/opt/docferry" ] || { echo "the program is still there"; exit 1; }
    on_machine /media/kiosk/pi/install.sh --uninstall --purge
    [ ! -e "$machine/var/lib/docferry" ] || { echo "the documents are still there"; exit 1; }
}

step "the emulator: $(qemu-aarch64-static --version | sed -n 's/^qemu-aarch64 version //p'), as a $CPU" register_emulator
step "Debian $SUITE for arm64" make_base arm64 python3,python3-venv,ca-certificates
step "what a Pi is given" collect_kiosk aarch64
step "a new machine" make_machine
step "install.sh${ONLINE:+, online}" install_there
step "install.sh again" install_again
step "the samples, read here" read_here
step "the samples, read there" read_there
step "the agent there, as its unit starts it, without a cloud" run_agent_there
step "install.sh --uninstall, then --purge" uninstall_there
count_ticks
echo "whole run: $SECONDS s, processor $((ticks / $(getconf CLK_TCK))) s"
