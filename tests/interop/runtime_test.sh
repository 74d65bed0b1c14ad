#!/usr/bin/env bash
# The path that `modelctl get` prints loads in a real llama.cpp, and the model says what the reference's file says.
# usage: runtime_test.sh BIN_DIR VENV RECIPE
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: runtime_test.sh BIN_DIR VENV RECIPE}") venv=$2 recipe=$3
data=$here/../data
. "$here/../support/private_daemon.sh"

start_hub "modeld/TinyVerse-4M=$data/TinyVerse-4M"
start_daemon
path=$("$bin/modelctl" get "modeld/TinyVerse-4M:$recipe" 2>"$work/get.log") || { cat "$work/get.log"; exit 1; }
"$venv/bin/python" "$here/generate.py" "$path" 24 'In the beginning' 'And it came to pass' >"$work/said" 2>"$work/runtime.log" ||
  { tail -20 "$work/runtime.log"; exit 1; }
"$venv/bin/python" - "$data/TinyVerse-4M.expected.json" "$recipe" "$work/said" <<'PY'
import json, sys
expected, recipe, said = sys.argv[1:]
file = {"BF16": "auto", "F32": "f32", "F16": "f16"}.get(recipe, recipe) + ".gguf"
wanted = {g["prompt"]: g["text"] for g in json.load(open(expected))["generation"] if g["file"] == file}
answers = [json.loads(line) for line in open(said)]
assert len(answers) == len(wanted) == 2, (answers, wanted)
for answer in answers:
    text, want = answer["text"], wanted[answer["prompt"]]
    print(f'{answer["prompt"]}|{text}')
    # Tokens are counted alike by both; a last one may be half a word that one of them holds back.
    same = text.startswith(want) or (want.startswith(text) and len(text) >= len(want) - 8)
    assert same, f"expected: {want}"
PY
