#!/usr/bin/env bash
# Runs every benchmark and prints its table. Ratios are against the reference's library where it can be had
# (tests/interop/get_reference.sh), in the same run.
# usage: run.sh DIR_OF_PROGRAMS [NAME...]
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: run.sh DIR_OF_PROGRAMS [NAME...]}"); shift

if [ -z "${MODELD_REFERENCE_LIB:-}" ]; then
  MODELD_REFERENCE_LIB=$("$here/../interop/get_reference.sh" "$(dirname "$bin")" | tail -1) || MODELD_REFERENCE_LIB=
  export MODELD_REFERENCE_LIB
fi
echo "machine: $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2- | xargs), $(nproc) processors, $(date -u +%F)"
for program in "$bin"/bench_*; do
  name=$(basename "$program")
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  printf '\n== %s\n' "$name"
  case $name in
    bench_fetch) # these bring their own Hub
      "$here/bench_fetch.sh" "$(dirname "$bin")" "${MODELD_BENCH_MIB:-512}"
      "$here/bench_hf.sh" "$(dirname "$bin")" "${MODELD_BENCH_MIB:-512}" ;;
    bench_clients) "$here/bench_clients.sh" "$bin" ;;
    bench_store)
      "$program"
      "$here/bench_large.sh" "$bin" ;;
    *) "$program" ;;
  esac
done
if [ $# -eq 0 ] || [[ " $* " == *" get "* ]]; then
  printf '\n== get\n'
  "$here/get.sh" "$bin"
fi
