#!/usr/bin/env bash
# Every invariant of ARCHITECTURE.md, and every known failure of stores and daemons (E01 to E13), has a test named for it.
# usage: named_tests.sh SOURCE_DIR
set -euo pipefail
source=${1:?usage: named_tests.sh SOURCE_DIR}
invariants=$(grep -oE '^\| S[0-9]+ \|' "$source/ARCHITECTURE.md" | grep -oE 'S[0-9]+')
[ "$(wc -w <<<"$invariants")" -ge 8 ] || { echo "ARCHITECTURE.md states too few invariants: $invariants"; exit 1; }
missing=()
for id in $invariants E{01..13}; do
  grep -rqF "[$id]" "$source/tests" --include='*.cpp' || missing+=("$id")
done
[ ${#missing[@]} -eq 0 ] || { echo "no test is tagged with: ${missing[*]}"; exit 1; }
