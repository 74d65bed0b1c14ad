#!/usr/bin/env bash
# usage: run.sh BIN_DIR SECONDS [TARGET]...   each fuzz target (default: all) in turn, from the committed seeds and from what
#                                             earlier runs found, which stays in BIN_DIR/../corpus, as does an input that fails
set -euo pipefail
bin=$(realpath "${1:?usage: run.sh BIN_DIR SECONDS [TARGET]...}")
seconds=${2:?usage: run.sh BIN_DIR SECONDS [TARGET]...}
shift 2
here=$(dirname "$(realpath "$0")")
if (($# == 0)); then
  for seeds in "$here"/seeds/*/; do set -- "$@" "$(basename "$seeds")"; done
fi
for name in "$@"; do
  corpus=$bin/../corpus/$name
  mkdir -p "$corpus" "$bin/../corpus/failed"
  dictionary=()
  [[ -f $here/$name.dict ]] && dictionary=("-dict=$here/$name.dict")
  echo "== $name, $seconds s"
  log=$bin/../corpus/$name.log
  "$bin/fuzz_$name" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -timeout=10 -print_final_stats=0 \
    -artifact_prefix="$bin/../corpus/failed/$name-" "${dictionary[@]}" "$corpus" "$here/seeds/$name" >"$log" 2>&1 ||
    { tail -60 "$log"; exit 1; }
  tail -1 "$log"
done
