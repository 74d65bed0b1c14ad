#!/usr/bin/env bash
# Every known failure of downloads (C01 to C22) and every pitfall of the Hub's protocol (1 to 34) has
# a test that carries its id in its name or tags.
# usage: case_names.sh SOURCE_DIR
set -euo pipefail
cd "${1:?usage: case_names.sh SOURCE_DIR}/tests"
names=$(grep -rhoE '\[[A-Za-z0-9-]+\]' --include='*_test.cpp' .)
missing=()
for n in $(seq -w 1 22); do grep -qF "[C$n]" <<<"$names" || missing+=("C$n"); done
for n in $(seq 1 34); do grep -qF "[pitfall-$n]" <<<"$names" || missing+=("pitfall $n"); done
[ ${#missing[@]} -eq 0 ] || { printf 'no test is named for %s\n' "${missing[@]}" >&2; exit 1; }
