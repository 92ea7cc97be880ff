#!/usr/bin/env bash
# Lints the contract and compares it with the committed baseline (replaced only at a release).
# buf gets a descriptor set rather than files, so that google/rpc needs no copy and no remote registry.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
site=$($python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
buf=proto/node_modules/.bin/buf
image=$(mktemp --suffix=.binpb)
trap 'rm -f "$image"' EXIT
$python -m grpc_tools.protoc -I proto -I "$site" --include_imports --include_source_info \
    --descriptor_set_out="$image" proto/docferry/v1/*.proto
$buf lint "$image" --config proto/buf.yaml
if [ "${1:-}" = "--release" ]; then
    install -m 644 "$image" proto/baseline.binpb
    echo "proto: baseline replaced"
else
    $buf breaking "$image" --against proto/baseline.binpb --config proto/buf.yaml
    echo "proto: lint clean, nothing broken since the baseline"
fi
