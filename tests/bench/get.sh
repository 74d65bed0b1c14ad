#!/usr/bin/env bash
# How long it takes to be told the path of a variant that is built: a whole `modelctl get`, and the request alone on an open
# connection. Medians of 200. Goal: under 10 ms and under 1 ms.
# usage: get.sh DIR_OF_PROGRAMS
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: get.sh DIR_OF_PROGRAMS}")
data=$here/../data
. "$here/../support/private_daemon.sh"

start_hub "modeld/TinyVerse-4M=$data/TinyVerse-4M"
start_daemon
ref=modeld/TinyVerse-4M@$(commit_of modeld/TinyVerse-4M):Q4_K_M
"$bin/modelctl" -q get "$ref" >/dev/null

median() { sort -n | awk '{ v[NR] = $1 } END { printf "median %.3f ms, 95 of 100 under %.3f ms\n", v[int((NR + 1) / 2)], v[int(NR * 0.95)] }'; }

echo -n "modelctl get, whole process:   "
for _ in $(seq 200); do
  begun=$EPOCHREALTIME
  "$bin/modelctl" get "$ref" >/dev/null
  awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print (b - a) * 1000 }'
done | median

echo -n "the same of /bin/true:         "
for _ in $(seq 200); do
  begun=$EPOCHREALTIME
  /bin/true
  awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print (b - a) * 1000 }'
done | median

echo -n "POST /v1/variants, the request: "
urls=()
for _ in $(seq 200); do urls+=(-o /dev/null http://modeld/v1/variants); done
curl -sS --unix-socket "$MODELD_SOCKET" -H 'Content-Type: application/json' -d "{\"ref\":\"$ref\"}" \
  -w '%{http_code} %{time_total}\n' "${urls[@]}" >"$work/times"
if grep -qv '^200 ' "$work/times"; then echo "not every answer was 200"; exit 1; fi
awk '{ print $2 * 1000 }' "$work/times" | median
