#!/usr/bin/env bash
# Generates Python code and type stubs from proto/ into the folder given (default: shared/).
# google/rpc comes from the googleapis-common-protos package, google/protobuf from grpcio-tools.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-shared}
python=${PYTHON:-.venv/bin/python}
site=$($python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
PATH=$(dirname "$(command -v "$python")"):$PATH
export PATH
mkdir -p "$out"
$python -m grpc_tools.protoc -I proto -I "$site" \
    --python_out="$out" --mypy_out="$out" --grpc_python_out="$out" --mypy_grpc_out="$out" \
    proto/docferry/v1/*.proto
touch "$out/docferry/v1/__init__.py"
# Only the service files have services: the other *_pb2_grpc modules hold nothing.
for file in "$out"/docferry/v1/*_pb2_grpc.py; do
    [[ $file == *_service_pb2_grpc.py ]] || rm "$file" "${file}i"
done
