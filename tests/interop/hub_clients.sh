#!/usr/bin/env bash
# Real Hub clients pull from modeld-test-hub, and every byte is compared. That proves the local Hub
# honest, and so everything that is tested against it.
#   usage: hub_clients.sh BUILD_DIR SOURCE_DIR
# Needs python3-venv, nodejs, npm and a package index; the clients are installed into the build folder.
set -euo pipefail
build=${1:?usage: hub_clients.sh BUILD_DIR SOURCE_DIR}
source=${2:?usage: hub_clients.sh BUILD_DIR SOURCE_DIR}
tools=$build/interop
data=$source/tests/data/TinyVerse-4M
mkdir -p "$tools"

# Pinned, so that a failure is ours. Raise them in a change of their own.
python_client=huggingface_hub==2.4.0
node_client=@huggingface/hub@2.17.5

if [ ! -e "$tools/python.ready" ]; then
  python3 -m venv --clear "$tools/python"
  "$tools/python/bin/pip" install --quiet --disable-pip-version-check "$python_client"
  touch "$tools/python.ready"
fi
if [ ! -e "$tools/node.ready" ]; then
  rm -rf "$tools/node" && mkdir -p "$tools/node"
  npm install --silent --no-audit --no-fund --prefix "$tools/node" "$node_client"
  touch "$tools/node.ready"
fi

work=$(mktemp -d)
hub= daemon=
cleanup() {
  for pid in $daemon $hub; do kill "$pid" 2>/dev/null || true; wait "$pid" || true; done
  rm -rf "$work"
}
trap cleanup EXIT

# Beside TinyVerse: folders, empty files, odd names, a listing of several pages, a private repository.
mkdir -p "$work/odd/deep/er" "$work/home"
printf '' > "$work/odd/empty.txt"
printf 'hello' > "$work/odd/deep/er/a b.json"
printf 'version 1' > "$work/odd/deep/umlaut-ä.txt"
head -c 300000 /dev/urandom > "$work/odd/weights.bin"
for i in $(seq -w 60); do echo "$i" > "$work/odd/deep/file$i.txt"; done
cp -r "$work/odd" "$work/python-odd"
printf 'percent' > "$work/python-odd/50% #1?.txt" # the Node client does not encode file names

"$build/bin/modeld-test-hub" --repo modeld/TinyVerse-4M="$data" --repo test/odd="$work/odd" \
  --repo test/private="$work/python-odd" --private test/private --token hf_interop=test/private \
  --page-size 25 --ready-file "$work/ready" > /dev/null &
hub=$!
for _ in $(seq 200); do [ -e "$work/ready" ] && break; sleep 0.05; done
endpoint=$(sed -E 's/.*"endpoint":"([^"]*)".*/\1/' "$work/ready")

export HF_ENDPOINT=$endpoint HF_HOME=$work/home HF_HUB_DISABLE_TELEMETRY=1 NO_PROXY=127.0.0.1,localhost
export HF_HUB_DISABLE_PROGRESS_BARS=1
unset HF_TOKEN HF_HUB_OFFLINE

compare() { # CLIENT, GOT, EXPECTED; the clients' own folders do not count
  diff -r --exclude=.cache "$2" "$3"
  echo "$1: $(find "$3" -type f | wc -l) files of $(basename "$3"), every byte the same"
}

pull_python() { # REPO, FOLDER
  "$tools/python/bin/python" - "$1" "$2" <<'PY'
import sys
from huggingface_hub import snapshot_download
snapshot_download(sys.argv[1], local_dir=sys.argv[2])
PY
}
pull_python modeld/TinyVerse-4M "$work/p1"
compare huggingface_hub "$work/p1" "$data"
pull_python test/odd "$work/p2"
compare huggingface_hub "$work/p2" "$work/odd"
HF_TOKEN=hf_interop pull_python test/private "$work/p3"
compare huggingface_hub "$work/p3" "$work/python-odd"
if pull_python test/private "$work/p4" > "$work/refused" 2>&1; then
  echo "huggingface_hub got a private repository without a token" >&2
  exit 1
fi
grep -q RepositoryNotFoundError "$work/refused"

cat > "$tools/node/pull.mjs" <<'JS'
import { snapshotDownload } from "@huggingface/hub";
const [repo, cacheDir, hubUrl] = process.argv.slice(2);
console.log(await snapshotDownload({ repo, cacheDir, hubUrl }));
JS
pull_node() { node "$tools/node/pull.mjs" "$1" "$2" "$endpoint" | tail -n 1; } # it prints each file before
compare @huggingface/hub "$(pull_node modeld/TinyVerse-4M "$work/n1")" "$data"
compare @huggingface/hub "$(pull_node test/odd "$work/n2")" "$work/odd"

# A cache that modeld made of a part of a commit is not the whole of it to its reader, who can complete it.
export MODELD_SOCKET=$work/modeld.sock
"$build/bin/modeld" --root "$work/store" --socket "$MODELD_SOCKET" 2> "$work/modeld.log" &
daemon=$!
for _ in $(seq 200); do "$build/bin/modelctl" health > /dev/null 2>&1 && break; sleep 0.05; done
"$build/bin/modelctl" -q pull --include '*.json' modeld/TinyVerse-4M > /dev/null
"$build/bin/modelctl" -q link modeld/TinyVerse-4M --to "hf=$work/hub" > /dev/null
"$tools/python/bin/python" - "$work/hub" "$work/whole" <<'PY'
import os, sys
from huggingface_hub import snapshot_download
repo, cache = "modeld/TinyVerse-4M", sys.argv[1]
snapshot_download(repo, cache_dir=cache, local_files_only=True, allow_patterns=["*.json"])
try:
    snapshot_download(repo, cache_dir=cache, local_files_only=True)
except Exception as error:
    assert type(error).__name__ == "IncompleteSnapshotError" and "README.md" in str(error), error
else:
    raise SystemExit("huggingface_hub took a part for the whole")
os.symlink(snapshot_download(repo, cache_dir=cache), sys.argv[2])
PY
compare "huggingface_hub, from a part" "$work/whole" "$data"
