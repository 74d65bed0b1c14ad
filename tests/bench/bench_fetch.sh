#!/usr/bin/env bash
# One large file from the local Hub, plain and over TLS: curl to /dev/null against our client, which
# also proves the digest. Prints seconds of each run and the ratio of the best ones.
#   usage: bench_fetch.sh BUILD_DIR [MIB]
set -euo pipefail
build=${1:?usage: bench_fetch.sh BUILD_DIR [MIB]}
mib=${2:-2048}
work=$(mktemp -d "$build/bench-fetch-XXXXXX")
hub=
stop_hub() { if [ -n "$hub" ]; then kill "$hub" && wait "$hub" || true; hub=; fi; }
trap 'stop_hub; rm -rf "$work"' EXIT
mkdir "$work/repo"
openssl enc -aes-128-ctr -pass pass:bench -nosalt -pbkdf2 -in /dev/zero 2>/dev/null |
  head -c $((mib << 20)) > "$work/repo/model.bin" || true # enc ends by SIGPIPE

smallest() { sort -n | head -n 1; }
run() { # NAME, options of the Hub
  local name=$1; shift
  rm -f "$work/ready"
  "$build/bin/modeld-test-hub" --repo bench/large="$work/repo" --ca-file "$work/ca.pem" \
    --ready-file "$work/ready" "$@" > /dev/null &
  hub=$!
  until [ -e "$work/ready" ]; do kill -0 "$hub"; sleep 0.1; done
  local endpoint curl_best our_best
  endpoint=$(sed -E 's/.*"endpoint":"([^"]*)".*/\1/' "$work/ready")
  local trust=(); [ -s "$work/ca.pem" ] && grep -q BEGIN "$work/ca.pem" && trust=(--cacert "$work/ca.pem")
  curl_best=$(for _ in 1 2 3; do
    curl -sSL "${trust[@]}" -o /dev/null -w '%{time_total}\n' "$endpoint/bench/large/resolve/main/model.bin"
  done | smallest)
  for _ in 1 2 3; do
    "$build/bin/bench_fetch" "$endpoint" bench/large ${trust:+--ca "$work/ca.pem"}
  done | tee "$work/ours"
  our_best=$(sed -E 's/.*"seconds":([0-9.]*).*/\1/' "$work/ours" | smallest)
  awk -v n="$name" -v c="$curl_best" -v o="$our_best" \
    'BEGIN { printf "%s: curl %.3f s, ours with SHA-256 %.3f s, ratio %.2f\n", n, c, o, c / o }'
  stop_hub
}
run plain
run tls --tls
