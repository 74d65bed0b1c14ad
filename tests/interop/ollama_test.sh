#!/usr/bin/env bash
# A real Ollama server lists, describes and runs what `modelctl link` shows it, and a model that Ollama made is taken in
# without a second copy. Not among the tests: building the server takes minutes (`make interop`).
# usage: ollama_test.sh BIN_DIR OLLAMA
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: ollama_test.sh BIN_DIR OLLAMA}") ollama=$(realpath "$2")
data=$here/../data
. "$here/../support/private_daemon.sh"

start_hub "modeld/TinyVerse-4M=$data/TinyVerse-4M"
start_daemon
export OLLAMA_MODELS=$work/ollama OLLAMA_HOST=127.0.0.1:$((20000 + $$ % 10000)) HOME=$work/home
mkdir -p "$HOME"
"$bin/modelctl" link modeld/TinyVerse-4M:Q8_0 --to ollama >"$work/name"
name=$(cat "$work/name")
[ "$name" = hf.co/modeld/TinyVerse-4M:Q8_0 ]

"$ollama" serve >"$work/ollama.log" 2>&1 &
started+=($!)
wait_for 60 curl -fsS "http://$OLLAMA_HOST/api/version" || { tail -20 "$work/ollama.log"; exit 1; }
"$ollama" list | tee "$work/list"
grep -q "$name" "$work/list"
"$ollama" show "$name" | tee "$work/show"
grep -Eq 'quantization +Q8_0' "$work/show"
grep -Eq 'architecture +llama' "$work/show"

ask() { # MODEL PROMPT: what it says at temperature 0, without a prompt format
  curl -fsS "http://$OLLAMA_HOST/api/generate" -d "{\"model\":\"$1\",\"prompt\":\"$2\",\"raw\":true,\"stream\":false,
    \"options\":{\"temperature\":0,\"num_predict\":24,\"num_ctx\":256,\"seed\":1}}" | python3 -c 'import json, sys; print(json.load(sys.stdin)["response"])'
}
said=$(ask "$name" 'In the beginning') || { tail -40 "$work/ollama.log"; exit 1; }
echo "In the beginning|$said"
python3 - "$data/TinyVerse-4M.expected.json" "$said" <<'PY'
import json, sys
wanted = next(g["text"] for g in json.load(open(sys.argv[1]))["generation"] if g["file"] == "Q8_0.gguf" and g["prompt"] == "In the beginning")
said = sys.argv[2].strip()
assert said and wanted.strip().startswith(said[:20]), f"expected: {wanted}"
PY

# Prune at start and our links: what Ollama thinks unused it removes, which must not hurt the store.
"$bin/modelctl" fsck >/dev/null

# A model that Ollama made.
"$bin/modelctl" get modeld/TinyVerse-4M:Q4_K_M >"$work/path" 2>/dev/null
cp "$(cat "$work/path")" "$work/mine.gguf"
"$bin/modelctl" --json rm modeld/TinyVerse-4M:Q4_K_M >/dev/null
"$bin/modelctl" --json gc --grace 0s >/dev/null
printf 'FROM %s\nPARAMETER temperature 0\n' "$work/mine.gguf" >"$work/Modelfile"
"$ollama" create mine -f "$work/Modelfile" >/dev/null 2>&1
digest=$(sha256sum "$work/mine.gguf" | cut -d' ' -f1)
[ -f "$OLLAMA_MODELS/blobs/sha256-$digest" ]
before=$(find "$work/store/blobs" "$OLLAMA_MODELS" -type f -printf '%D:%i %b\n' | sort -u | awk '{ s += $2 } END { print s }')
"$bin/modelctl" import --from ollama --link
after=$(find "$work/store/blobs" "$OLLAMA_MODELS" -type f -printf '%D:%i %b\n' | sort -u | awk '{ s += $2 } END { print s }')
echo "blocks of distinct inodes: $before before the import, $after after it"
[ "$after" -le $((before + 64)) ]
path=$("$bin/modelctl" get ollama/mine:mine-latest.gguf)
[ "$(sha256sum "$path" | cut -d' ' -f1)" = "$digest" ]
ask mine 'And it came to pass'
"$bin/modelctl" fsck --deep
echo "ollama: all good"
