#!/usr/bin/env bash
# A store of 100,000 blobs and 10,000 snapshots, asked through a daemon: its start, `ls`, a collection's plan.
# usage: bench_large.sh BIN_DIR [SNAPSHOTS] [FOLDER]    FOLDER: where to make the store; default /dev/shm
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: bench_large.sh BIN_DIR [SNAPSHOTS] [FOLDER]}")
export TMPDIR=${3:-/dev/shm}
. "$here/../support/private_daemon.sh"
"$bin/bench_store" --make "$work/store" "${2:-10000}"

milliseconds() { # WHAT COMMAND...: the best of five, the whole process included
  local what=$1 best=999999 i start took
  shift
  for i in 1 2 3 4 5; do
    start=$(date +%s%N)
    "$@" >/dev/null
    took=$((($(date +%s%N) - start) / 100000))
    [ $took -ge $best ] || best=$took
  done
  printf '%-40s %6d.%d ms\n' "$what" $((best / 10)) $((best % 10))
}

start=$(date +%s%N)
start_daemon
echo "daemon answers after $((($(date +%s%N) - start) / 1000000)) ms"
ask() { curl -fsS --unix-socket "$MODELD_SOCKET" http://localhost/v1/"$@"; }
milliseconds "GET /v1/health, for comparison" ask health
milliseconds "GET /v1/snapshots" ask snapshots
milliseconds "modelctl ls" "$bin/modelctl" ls
milliseconds "POST /v1/gc, dry run" ask gc -d '{"dry_run":true,"grace_seconds":0}'
milliseconds "modelctl gc --dry-run" "$bin/modelctl" gc --dry-run --grace 0s
milliseconds "modelctl gc --dry-run --all" "$bin/modelctl" gc --dry-run --all --grace 0s
