#!/usr/bin/env bash
# The main job in a screenful: a model from a local Hub, proved, quantized and handed out by a private daemon.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: run.sh DIR_OF_PROGRAMS}")
data=$here/../tests/data
. "$here/../tests/support/private_daemon.sh"

say() { printf '  %-10s %s\n' "$@"; }
seconds() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f s", b - a }'; }
size_of() { stat -c %s "$1" | numfmt --to=si --suffix=B --format=%.1f; }

name=modeld/TinyVerse-4M recipe=Q4_K_M
start_hub "$name=$data/TinyVerse-4M"
start_daemon
commit=$(commit_of "$name")
ref=$name@$commit:$recipe

echo "modeld: one verified copy of a model, any quantization, any runtime"
echo
say Hub "$HF_ENDPOINT, local, serves $name at commit ${commit:0:12}"
say Store "$work/store, of this demo only"
echo
echo "\$ modelctl get $name@${commit:0:8}:$recipe"
begun=$(date +%s.%N)
path=$("$bin/modelctl" get "$ref")
first=$(seconds "$begun")
echo "$path"
echo

snapshot=$(dirname "$path")
sources=$(find "$snapshot" -type f ! -name '*.gguf' | wc -l)
sha256=$(sha256sum "$path" | cut -d' ' -f1)
# The reference's digest of the same file, made by llama.cpp's converter and quantizer.
expected=$(tr -d ' \n' <"$data/TinyVerse-4M.expected.json" |
  grep -oE "\"file\":\"$recipe.gguf\",\"bytes\":[0-9]+,\"sha256\":\"[0-9a-f]{64}" | grep -oE '[0-9a-f]{64}$')
say verified "$sources files of the commit: every size, every SHA-256 or git id, every tensor's place"
say built "$(size_of "$path") of $recipe out of $(du -cbL "$snapshot"/*.safetensors | tail -1 | cut -f1 | numfmt --to=si --suffix=B --format=%.1f) of BF16, no file in between, in $first with the download"
say sha256 "$sha256"
[ "$sha256" = "$expected" ] || { say reference "$expected: NOT THE SAME"; exit 1; }
say reference "the same: llama.cpp v0.4.0's converter and quantizer make this file, byte for byte"

begun=$(date +%s.%N)
again=$("$bin/modelctl" get "$ref")
[ "$again" = "$path" ] || { echo "the second answer differs: $again"; exit 1; }
say again "the same path in $(seconds "$begun"), no job, no request to the Hub"
say "read-only" "$(stat -c '%A %h links, one copy on the disk' "$path")"
echo
echo "Stopping the daemon and the Hub, removing the store."
