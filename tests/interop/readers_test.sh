#!/usr/bin/env bash
# Whatever our strict profile accepts, the formats' own readers accept: the reference's GGUF reader and the safetensors package,
# over many small changes of good files.
#   usage: readers_test.sh BUILD_DIR [CHANGES]
set -euo pipefail
build=${1:?usage: readers_test.sh BUILD_DIR [CHANGES]}
changes=${2:-100000}
tools=$build/interop
mkdir -p "$tools"
if [ ! -e "$tools/safetensors.ready" ]; then
  python3 -m venv --clear "$tools/safetensors"
  "$tools/safetensors/bin/pip" install --quiet --disable-pip-version-check safetensors==0.6.2 numpy==1.26.4
  touch "$tools/safetensors.ready"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bin/readers_differential" "$tools/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-base.so" "$changes" "$work"
"$tools/safetensors/bin/python" - "$work" <<'PY'
import pathlib, sys
from safetensors import safe_open
refused = 0
files = sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors"))
for path in files:
    try:
        with safe_open(path, framework="np") as file:
            list(file.keys())
    except Exception as error:
        refused += 1
        print(f"accepted by us, refused by the safetensors package: {path.read_bytes()[:300]!r}: {error}")
print(f"safetensors: {len(files)} accepted, {refused} of them refused by the package")
sys.exit(1 if refused or not files else 0)
PY
