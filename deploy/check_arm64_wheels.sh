#!/usr/bin/env bash
# Every package of the edge must come as a wheel for 64-bit Raspberry Pi OS (glibc 2.36: bookworm), Python 3.11 and 3.13.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
for version in 3.11 3.13; do
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    $python - edge <<'PY' > "$folder/requirements.txt"
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
names = list(project["dependencies"])
def add(extra):
    for name in extras[extra]:
        if name.startswith("docferry["):
            add(name[len("docferry["):-1])
        else:
            names.append(name)
add(sys.argv[1])
print("\n".join(names))
PY
    platforms=()
    for glibc in 2_17 2_24 2_26 2_27 2_28 2_31 2_34 2_36; do platforms+=(--platform "manylinux_${glibc}_aarch64"); done
    $python -m pip download --quiet --disable-pip-version-check --dest "$folder" --only-binary=:all: \
        --python-version "$version" --implementation cp --platform manylinux2014_aarch64 "${platforms[@]}" \
        -c deploy/constraints.txt -r "$folder/requirements.txt"
    echo "aarch64, Python $version: $(find "$folder" -name '*.whl' | wc -l) wheels, $(du -sh "$folder" | cut -f1)"
done
