#!/usr/bin/env bash
# Golden models of different families, converted by us, load in a real llama.cpp and generate.
# usage: golden_runtime_test.sh BIN_DIR VENV GOLDEN CASE...
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: golden_runtime_test.sh BIN_DIR VENV GOLDEN CASE...}") venv=$2 golden=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for case in "$@"; do
  rm -f "$work"/*
  # Only a file that is equal to the reference's is written.
  "$bin/golden_convert" --write "$work" --only '--outtype auto' --skip mmproj "$golden/$case" >"$work/log" || { cat "$work/log"; exit 1; }
  if "$venv/bin/python" "$here/generate.py" "$work/auto.gguf" 8 'Hello world' 'a b c' >"$work/said" 2>"$work/runtime.log" &&
    [ "$(grep -c '"text": "..*"' "$work/said")" = 2 ]; then
    printf '%s: ' "$case"
    head -c 200 "$work/said" | head -1
  else
    echo "$case: not loaded, or nothing generated"
    cat "$work/said"
    tail -5 "$work/runtime.log"
    failed=1
  fi
done
exit $failed
