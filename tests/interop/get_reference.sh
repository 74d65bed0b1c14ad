#!/usr/bin/env bash
# Fetches the reference's own libraries (llama.cpp v0.4.0, ggml 0.23.0, as the npm package of node-llama-cpp ships them)
# for comparison. They are never linked into modeld. Prints the path of libggml-base.so.
# usage: tests/interop/get_reference.sh [BUILD_FOLDER]      default: build
set -euo pipefail
dir=$(realpath -m "${1:-build}")/interop
package=@node-llama-cpp/linux-x64
library=$dir/node_modules/$package/bins/linux-x64/libggml-base.so
mkdir -p "$dir"
[ -f "$library" ] || npm install --silent --no-save --ignore-scripts --prefix "$dir" -E "$package@3.21.1" >&2
[ -f "$library" ]
echo "$library"
