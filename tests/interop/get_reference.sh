#!/usr/bin/env bash
# Fetches the reference's own library (llama.cpp v0.4.0, ggml 0.23.0, as its npm package ships it)
# for comparison. It is never linked into modeld.
# usage: tests/interop/get_reference.sh [BUILD_FOLDER]      default: build
set -euo pipefail
dir=$(realpath -m "${1:-build}")/interop
mkdir -p "$dir"
npm install --silent --no-save --ignore-scripts --prefix "$dir" -E node-llama-cpp@3.21.1
find "$dir/node_modules/@node-llama-cpp" -name 'libggml-base.so' -print
