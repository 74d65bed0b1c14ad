#!/usr/bin/env bash
# Real files out of npm and PyPI packages pass: the vocabularies of the reference's source tree (GGUF) and an embedding
# model (safetensors).
#   usage: real_files.sh BUILD_DIR
set -euo pipefail
build=${1:?usage: real_files.sh BUILD_DIR}
files=$build/interop/real_files

# Pinned, so that a failure is ours.
source_package=node-llama-cpp@3.21.1
python_package=wordllama==0.4.0.post1

if [ ! -e "$files/ready" ]; then
  rm -rf "$files" && mkdir -p "$files"
  (cd "$files" && npm pack --silent "$source_package" >/dev/null && tar xzf node-llama-cpp-*.tgz package/llama/gitRelease.bundle)
  git clone --quiet --no-checkout "$files/package/llama/gitRelease.bundle" "$files/source" 2>/dev/null
  git -C "$files/source" checkout --quiet HEAD -- models
  python3 -m venv "$files/python"
  "$files/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$files" "$python_package"
  python3 -m zipfile -e "$files"/wordllama-*.whl "$files/wheel"
  rm -rf "$files"/*.tgz "$files"/*.whl "$files/package" "$files/python"
  touch "$files/ready"
fi

mapfile -t real < <(find "$files/source/models" "$files/wheel" -name '*.gguf' -o -name '*.safetensors' | sort)
[ "${#real[@]}" -ge 20 ] || { echo "only ${#real[@]} real files"; exit 1; }
"$build/bin/modelctl" check --data "${real[@]}"
for file in "${real[@]}"; do
  "$build/bin/modelctl" --json inspect "$file" | python3 -c 'import json, sys; json.load(sys.stdin)["tensors"]'
done
