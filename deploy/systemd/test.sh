#!/usr/bin/env bash
# Boots a Debian of this machine's architecture, lets deploy/pi/install.sh install the edge there, and sees that the agent
# works as the hardened unit starts it: what the unit forbids shows only under systemd. `make test-systemd` runs it.
#
#   SUITE=bookworm   the Debian release: bookworm (Python 3.11) or trixie (3.13)
#   MIRROR=URL       where the Debian packages come from
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$project"
# shellcheck source=deploy/machine.sh
. deploy/machine.sh
SUITE=${SUITE:-bookworm} MIRROR=${MIRROR:-http://deb.debian.org/debian} PYTHON=${PYTHON:-.venv/bin/python}
export PYTHON
stand_apart "${BASH_SOURCE[0]}" SUITE,MIRROR
open_cache "$project/.cache/systemd/$SUITE"
patience=300

boot() {
    copy_base
    systemd-nspawn --quiet --directory="$machine" --register=no --keep-unit --private-network \
        --bind-ro="$kiosk:/media/kiosk" --boot </dev/null >"$cache/boot" 2>&1 &
    echo $! >"$cache/nspawn"
    wait_for "a booted system" booted
}

# Degraded it is when some unit of Debian's has nothing to do in a container.
booted() { inside systemctl is-system-running | grep -xE 'running|degraded'; }

inside() {  # COMMAND...: as root on the booted machine
    local leader
    leader=$(cat "/proc/$(cat "$cache/nspawn")/task/$(cat "$cache/nspawn")/children")
    nsenter --target "${leader%% *}" --mount --pid --uts --net --ipc --cgroup \
        /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

wait_for() {  # WHAT COMMAND...
    local what=$1 end=$((SECONDS + patience))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "$what: not within $patience s" && exit 1; }
        sleep 0.5
    done
}

install_there() { inside /media/kiosk/pi/install.sh --wheels /media/kiosk/wheels --bundle /media/kiosk/models; }

install_again() {
    install_there | tee "$cache/again"
    must_have_changed_nothing "$cache/again"
}

said() { inside journalctl --unit docferry-edge --output cat --no-pager; }

has_said() { said | grep -q "$1"; }

states() {  # of all documents in the outbox, read beside the running agent
    inside /opt/docferry/bin/python -c 'import sqlite3
rows = sqlite3.connect("file:/var/lib/docferry/edge/outbox.sqlite?mode=ro", uri=True).execute("SELECT state FROM documents")
print(*(state for state, in rows))'
}

read_there() {
    local inbox=$machine/srv/docferry/inbox
    cp shared/docferry/samples/thermal_receipt.jpg "$inbox/.receipt.jpg"
    mv "$inbox/.receipt.jpg" "$inbox/receipt.jpg"
    wait_for "an answer" has_said '^receipt.jpg  read'
    said | grep -A 6 '^receipt.jpg  read'
    [ ! -e "$inbox/receipt.jpg" ] || { echo "the picture is still in the inbox" && exit 1; }
    [ "$(states)" = packed ] || { echo "the outbox holds: $(states)" && exit 1; }
    if said | grep -iE 'traceback|error in|denied|not permitted'; then
        echo "the agent was kept from something" && exit 1
    fi
}

kill_there() {
    inside systemctl kill --signal=KILL docferry-edge
    wait_for "a new agent" restarted
    [ "$(states)" = packed ] || { echo "the outbox holds: $(states)" && exit 1; }
    echo "systemd has started it again, and the document is still there"
}

restarted() { [ "$(inside systemctl show --value --property=NRestarts docferry-edge)" = 1 ] && inside systemctl is-active docferry-edge; }

uninstall_there() {
    inside /media/kiosk/pi/install.sh --uninstall
    ! inside systemctl is-active --quiet docferry-edge || { echo "the agent still runs" && exit 1; }
    [ -e "$machine/var/lib/docferry/edge/outbox.sqlite" ] || { echo "the documents are gone" && exit 1; }
    inside /media/kiosk/pi/install.sh --uninstall --purge
    [ ! -e "$machine/var/lib/docferry" ] || { echo "the documents are still there" && exit 1; }
}

step "Debian $SUITE" make_base "$(dpkg --print-architecture)" systemd,systemd-sysv,dbus,python3,python3-venv,ca-certificates
step "what the machine is given" collect_kiosk "$(uname -m)"
step "booting" boot
step "install.sh" install_there
step "install.sh again" install_again
step "a receipt, read by the unit, without network" read_there
step "kill -9" kill_there
step "install.sh --uninstall, then --purge" uninstall_there
echo "whole run: $SECONDS s"
