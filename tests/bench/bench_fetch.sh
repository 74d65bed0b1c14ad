#!/usr/bin/env bash
# The local Hub, plain and over TLS. One large file, in turn, and the medians: curl to /dev/null, curl
# with the digest being computed behind a pipe, and our client, which proves the digest too. Nobody who
# computes it can be faster than SHA-256, which is a chain, nor than the processors: so the ratio is
# also given against the slowest of curl, SHA-256 alone, and the processor time of the Hub, curl and
# SHA-256 shared by all processors. Processor time beyond that of curl and SHA-256 is given as a part
# of SHA-256's. Then the memory of 32 transfers at once.
#   usage: bench_fetch.sh BUILD_DIR [MIB] [RUNS]
set -euo pipefail
build=${1:?usage: bench_fetch.sh BUILD_DIR [MIB] [RUNS]}
mib=${2:-2048}
runs=${3:-5}
work=$(mktemp -d "$build/bench-fetch-XXXXXX")
hub=
stop_hub() { if [ -n "$hub" ]; then kill "$hub" && wait "$hub" || true; hub=; fi; }
trap 'stop_hub; rm -rf "$work"' EXIT
random() { # SEED BYTES
  openssl enc -aes-128-ctr -pass "pass:bench$1" -nosalt -pbkdf2 -in /dev/zero 2>/dev/null |
    head -c "$2" || true # enc ends by SIGPIPE
}
mkdir -p "$work/large" "$work/many"
random 0 $((mib << 20)) > "$work/large/model.bin"
for i in $(seq 32); do random "$i" $((mib * 32768)) > "$work/many/part-$i.bin"; done

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
column() { cut -d ' ' -f "$1" "$2" | median; }
number() { sed -E "s/.*\"$1\":([0-9.]*).*/\1/"; }
TIMEFORMAT='%U %S'
with_curl() { # URL, options: "seconds cpu-seconds"
  local url=$1 wall; shift
  { time wall=$(curl -sSL "$@" -o /dev/null -w '%{time_total}' "$url") ; } 2> "$work/time"
  awk -v w="$wall" '{ print w, $1 + $2 }' "$work/time"
}
digested_curl() { # URL, options: "seconds"
  local start end
  start=$(date +%s.%N)
  curl -sSL "$@" | openssl dgst -sha256 > /dev/null
  end=$(date +%s.%N)
  awk -v a="$start" -v b="$end" 'BEGIN { print b - a }'
}
hub_seconds() { awk -v t="$(getconf CLK_TCK)" '{ print ($14 + $15) / t }' "/proc/$hub/stat"; }
figures() { # what bench_fetch printed: "seconds cpu-seconds peak-kib"
  local cpu
  cpu=$(awk -v u="$(number cpu_user <<<"$1")" -v s="$(number cpu_system <<<"$1")" 'BEGIN { print u + s }')
  echo "$(number seconds <<<"$1") $cpu $(number peak_kib <<<"$1")"
}
ours() { # ENDPOINT REPO, options
  figures "$("$build/bin/bench_fetch" "$@")"
}
run() { # NAME, options of the Hub
  local name=$1; shift
  rm -f "$work/ready" "$work/curl" "$work/digested" "$work/ours" "$work/sha" "$work/hub"
  "$build/bin/modeld-test-hub" --repo bench/large="$work/large" --repo bench/many="$work/many" \
    --ca-file "$work/ca.pem" --ready-file "$work/ready" "$@" > /dev/null &
  hub=$!
  until [ -e "$work/ready" ]; do kill -0 "$hub"; sleep 0.1; done
  local endpoint trust=() ca=()
  endpoint=$(sed -E 's/.*"endpoint":"([^"]*)".*/\1/' "$work/ready")
  if grep -q BEGIN "$work/ca.pem"; then trust=(--cacert "$work/ca.pem") ca=(--ca "$work/ca.pem"); fi
  local before
  for _ in $(seq "$runs"); do
    before=$(hub_seconds)
    with_curl "$endpoint/bench/large/resolve/main/model.bin" "${trust[@]}" >> "$work/curl"
    awk -v a="$before" -v b="$(hub_seconds)" 'BEGIN { print b - a }' >> "$work/hub"
    digested_curl "$endpoint/bench/large/resolve/main/model.bin" "${trust[@]}" >> "$work/digested"
    ours "$endpoint" bench/large "${ca[@]}" >> "$work/ours"
    figures "$("$build/bin/bench_fetch" --sha256 "$mib")" >> "$work/sha"
  done
  awk -v n="$name" -v m="$mib" -v p="$(nproc)" -v d="$(median < "$work/digested")" -v h="$(median < "$work/hub")" \
    -v c="$(column 1 "$work/curl")" -v o="$(column 1 "$work/ours")" -v s="$(column 1 "$work/sha")" \
    -v cc="$(column 2 "$work/curl")" -v oc="$(column 2 "$work/ours")" -v sc="$(column 2 "$work/sha")" -v k="$(column 3 "$work/ours")" 'BEGIN {
      bound = c > s ? c : s
      shared = (h + cc + sc) / p
      if (shared > bound) bound = shared
      printf "%s, %d MiB: curl %.3f s, curl with a digest %.3f s, SHA-256 alone %.3f s, ours %.3f s\n", n, m, c, d, s, o
      printf "  %.2f of curl, %.2f of curl with a digest, %.2f of the bound\n", c / o, d / o, bound / o
      printf "  processor: Hub %.2f s, curl %.2f s, SHA-256 %.2f s, ours %.2f s: beyond curl and SHA-256 %.0f %% of SHA-256; peak %.1f MiB\n",
        h, cc, sc, oc, 100 * (oc - cc - sc) / sc, k / 1024 }'
  ours "$endpoint" bench/many --parallel 32 "${ca[@]}" |
    awk -v n="$name" '{ printf "%s, 32 transfers at once: %.3f s, peak %.1f MiB\n", n, $1, $3 / 1024 }'
  stop_hub
}
run plain
run tls --tls
