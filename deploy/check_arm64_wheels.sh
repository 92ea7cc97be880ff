#!/usr/bin/env bash
# Every package of the edge must come as a wheel for 64-bit Raspberry Pi OS (glibc 2.36: bookworm), Python 3.11 and 3.13.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 3.11 3.13; do
    deploy/pi/collect.sh --no-models --python "$version" "$folder/$version"
    wheels=$folder/$version/wheels
    echo "aarch64, Python $version: $(find "$wheels" -name '*.whl' | wc -l) wheels, $(du -sh "$wheels" | cut -f1)"
done
