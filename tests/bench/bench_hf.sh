#!/usr/bin/env bash
# A snapshot of 5 shards and 200 small files from the local Hub: `hf download` (PyPI, with hf-xet and
# without) against `modelctl pull`, which also proves every digest and fsyncs. Each into a store of
# its own, in turn; medians of RUNS.
#   usage: bench_hf.sh BUILD_DIR [MIB] [RUNS]
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=$(realpath "${1:?usage: bench_hf.sh BUILD_DIR [MIB] [RUNS]}")
mib=${2:-2048}
runs=${3:-3}
bin=$build/bin
tools=$build/interop
if [ ! -e "$tools/python.ready" ]; then
  mkdir -p "$tools"
  python3 -m venv --clear "$tools/python"
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check huggingface_hub==2.4.0
  touch "$tools/python.ready"
fi
TMPDIR=$build
. "$here/../support/private_daemon.sh"
mkdir -p "$work/repo/files" "$work/home"
for i in 1 2 3 4 5; do
  openssl enc -aes-128-ctr -pass pass:bench$i -nosalt -pbkdf2 -in /dev/zero 2>/dev/null |
    head -c $((mib * 1048576 / 5)) > "$work/repo/model-0000$i-of-00005.bin" || true # enc ends by SIGPIPE
done
for i in $(seq -w 200); do echo "small file $i" > "$work/repo/files/$i.json"; done
start_hub bench/snapshot="$work/repo"
export HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_DISABLE_PROGRESS_BARS=1 HF_HOME=$work/home
export NO_PROXY=127.0.0.1,localhost
unset HF_TOKEN HF_HUB_OFFLINE

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
seconds() { # COMMAND...
  local start end
  start=$(date +%s.%N)
  "$@" > "$work/out" 2> "$work/err" || { cat "$work/err" >&2; return 1; }
  end=$(date +%s.%N)
  awk -v a="$start" -v b="$end" 'BEGIN { printf "%.2f\n", b - a }'
}
hf() { # HF_HUB_DISABLE_XET's value
  rm -rf "$work/hf"
  HF_HUB_DISABLE_XET=$1 seconds "$tools/python/bin/hf" download bench/snapshot --cache-dir "$work/hf"
}
ours() {
  rm -rf "$work/store"
  start_daemon
  seconds "$bin/modelctl" --quiet pull bench/snapshot
  kill "${started[-1]}" && wait "${started[-1]}" || true
}
for _ in $(seq "$runs"); do
  hf 0 >> "$work/xet"
  hf 1 >> "$work/plain"
  ours >> "$work/ours"
done
awk -v m="$mib" -v x="$(median "$work/xet")" -v p="$(median "$work/plain")" -v o="$(median "$work/ours")" 'BEGIN {
  printf "%d MiB in 5 shards and 200 small files: hf %.2f s, without hf-xet %.2f s, ours %.2f s; %.1f and %.1f times\n",
    m, x, p, o, x / o, p / o }'
