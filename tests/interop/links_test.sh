#!/usr/bin/env bash
# Real readers open what `modelctl link` shows them: huggingface_hub and transformers offline, llama.cpp by LM Studio's and
# its own cache names. And one copy is one copy: blocks of distinct inodes are counted.
# usage: links_test.sh BIN_DIR READERS_VENV RUNTIME_VENV
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: links_test.sh BIN_DIR READERS_VENV RUNTIME_VENV}") readers=$2 runtime=$3
data=$here/../data
. "$here/../support/private_daemon.sh"

start_hub "modeld/TinyVerse-4M=$data/TinyVerse-4M"
start_daemon
ref=modeld/TinyVerse-4M
"$bin/modelctl" get "$ref:Q8_0" >"$work/path" 2>"$work/get.log" || { cat "$work/get.log"; exit 1; }
blocks() { find "$@" -type f -printf '%D:%i %b\n' | sort -u | awk '{ sum += $2 } END { print sum }'; }
before=$(blocks "$work/store/blobs")

# The cache of huggingface_hub, beside a repository that is its own.
cache=$work/hf/hub
mkdir -p "$cache/models--own--repo/refs"
echo -n "$(printf 'a%.0s' {1..40})" >"$cache/models--own--repo/refs/main"
"$bin/modelctl" link "$ref" --to "hf=$cache"
env -u HF_ENDPOINT HF_HUB_OFFLINE=1 HF_HUB_CACHE="$cache" HF_HUB_DISABLE_TELEMETRY=1 "$readers/bin/python" - "$data/TinyVerse-4M" <<'PY'
import filecmp, os, sys
from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download, try_to_load_from_cache
from transformers import AutoConfig, AutoTokenizer
from safetensors import safe_open

source, repo = sys.argv[1], "modeld/TinyVerse-4M"
folder = snapshot_download(repo, local_files_only=True)
for root, _, names in os.walk(source):
    for name in names:
        path = os.path.relpath(os.path.join(root, name), source)
        assert filecmp.cmp(os.path.join(source, path), os.path.join(folder, path), shallow=False), path
assert hf_hub_download(repo, "config.json", local_files_only=True) == os.path.join(folder, "config.json")
assert isinstance(try_to_load_from_cache(repo, "config.json"), str)
found = scan_cache_dir()
assert {r.repo_id for r in found.repos} >= {repo}, found
assert not [w for w in found.warnings if repo.replace("/", "--") in str(w)], found.warnings
config = AutoConfig.from_pretrained(repo, local_files_only=True)
tokens = AutoTokenizer.from_pretrained(repo, local_files_only=True)("In the beginning")["input_ids"]
assert tokens, tokens
with safe_open(os.path.join(folder, "model.safetensors") if os.path.exists(os.path.join(folder, "model.safetensors"))
               else next(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".safetensors")), "np") as weights:
    assert list(weights.keys())
print(f"huggingface_hub and transformers offline: {config.model_type}, {len(tokens)} tokens")
PY
grep -q '^a*$' "$cache/models--own--repo/refs/main"

# Programs that look for a file.
say() { "$runtime/bin/python" "$here/generate.py" "$1" 16 'In the beginning' 2>"$work/runtime.log" || { tail -20 "$work/runtime.log" >&2; exit 1; }; }
wanted=$(say "$(cat "$work/path")")
for place in "lmstudio=$work/lms" "llamacpp=$work/llama.cpp" "models-dir=$work/models" "$work/plain/"; do
  "$bin/modelctl" link "$ref:Q8_0" --to "$place" >"$work/names" 2>"$work/why"
  file=$(find "${place#*=}" -name '*.gguf')
  [ "$(say "$file")" = "$wanted" ]
  echo "llama.cpp reads $file: $(cat "$work/why")"
done
[ -s "$work/llama.cpp/manifest=modeld=TinyVerse-4M=Q8_0.json" ]

after=$(blocks "$work/store/blobs" "$work/hf" "$work/lms" "$work/llama.cpp" "$work/models" "$work/plain")
echo "blocks of distinct inodes: $before in the store, $after with all places"
[ $((after - before)) -lt 64 ] # small files that were written
"$bin/modelctl" fsck >/dev/null
