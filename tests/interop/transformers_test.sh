#!/usr/bin/env bash
# transformers loads the whole model, weights too, from what `modelctl link` shows in a Hugging Face cache, and says what
# the reference says. Not among the tests: PyTorch comes as 150 MB of Debian's packages (deps/debian-interop.txt), and a
# transformers of its time with it (`make interop`).
# usage: transformers_test.sh BIN_DIR VENV
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: transformers_test.sh BIN_DIR VENV}") venv=${2:?usage: transformers_test.sh BIN_DIR VENV}
data=$here/../data
if ! "$venv/bin/python" -c 'import torch, transformers, safetensors, sentencepiece' 2>/dev/null; then
  # Debian's own Python: another one on the path does not see Debian's PyTorch.
  /usr/bin/python3 -m venv --clear --system-site-packages "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check 'transformers==4.36.2' 'numpy<2' 'sentencepiece==0.2.0' 'protobuf<5'
fi
venv=$(realpath -s "$venv")
. "$here/../support/private_daemon.sh"

start_hub "modeld/TinyVerse-4M=$data/TinyVerse-4M"
start_daemon
export HOME=$work/home HF_HOME=$work/hf HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
mkdir -p "$HOME"
"$bin/modelctl" pull modeld/TinyVerse-4M >/dev/null 2>&1
"$bin/modelctl" link modeld/TinyVerse-4M --to "huggingface=$HF_HOME/hub" >/dev/null 2>&1
"$venv/bin/python" - "$data/TinyVerse-4M.expected.json" <<'PY'
import json, sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
name = "modeld/TinyVerse-4M"
tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
model = AutoModelForCausalLM.from_pretrained(name, local_files_only=True, torch_dtype=torch.float32).eval()
wanted = [g for g in json.load(open(sys.argv[1]))["generation"] if g["file"] == "f32.gguf"]
assert wanted
for one in wanted:
    asked = tokenizer(one["prompt"], return_tensors="pt")
    with torch.no_grad():
        said = model.generate(**asked, max_new_tokens=one["tokens"], do_sample=False)[0]
    text = tokenizer.decode(said[asked["input_ids"].shape[1]:], skip_special_tokens=True)
    print(f"{one['prompt']}|{text}")
    # The reference's tokenizer keeps a space at the end; sums of floats may part the last words.
    assert one["text"].strip()[:40] == text.strip()[:40], one["text"]
PY
# Nothing was added to the cache, and nothing of the store was touched.
"$bin/modelctl" fsck --deep >/dev/null
echo "transformers: all good"
