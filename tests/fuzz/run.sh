#!/usr/bin/env bash
# usage: run.sh BIN_DIR [SECONDS]     each fuzz target in turn, from the committed seeds; new inputs stay in BIN_DIR/../corpus
set -euo pipefail
bin=$(realpath "${1:?usage: run.sh BIN_DIR [SECONDS]}")
seconds=${2:-${MODELD_FUZZ_SECONDS:-3600}}
here=$(dirname "$(realpath "$0")")
for program in "$bin"/fuzz_*; do
  name=$(basename "$program"); name=${name#fuzz_}
  [[ -d $here/seeds/$name ]] || continue
  corpus=$bin/../corpus/$name
  mkdir -p "$corpus"
  dictionary=()
  [[ -f $here/$name.dict ]] && dictionary=("-dict=$here/$name.dict")
  echo "== $name, $seconds s"
  "$program" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -timeout=10 -print_final_stats=0 \
    "${dictionary[@]}" "$corpus" "$here/seeds/$name" 2>&1 | tail -3
done
