#!/usr/bin/env bash
# huggingface_hub and our daemon pull the same repositories from one Hub, and their folders are
# compared, every file: models, odd names, a private repository, patterns, a branch that moves while
# both are in the middle, and the new commit after that.
#   usage: same_tree.sh BUILD_DIR SOURCE_DIR; hub_clients.sh has installed the client
set -euo pipefail
build=${1:?usage: same_tree.sh BUILD_DIR SOURCE_DIR}
source=${2:?usage: same_tree.sh BUILD_DIR SOURCE_DIR}
bin=$build/bin
python=$build/interop/python/bin/python
. "$source/tests/support/private_daemon.sh"

mkdir -p "$work/odd/deep/er" "$work/first" "$work/second/new" "$work/home"
printf '' > "$work/odd/empty.txt"
printf 'hello' > "$work/odd/deep/er/a b.json"
printf 'umlaut' > "$work/odd/deep/umlaut-ä.txt"
printf 'percent' > "$work/odd/50% #1?.txt"
printf 'brackets' > "$work/odd/[x] & 'y' + z=1.txt"
head -c 300000 /dev/urandom > "$work/odd/weights.bin"
for i in $(seq -w 120); do echo "$i" > "$work/odd/deep/file$i.txt"; done
for i in $(seq -w 30); do echo "first $i" > "$work/first/file$i.txt"; done
head -c 200000000 /dev/urandom > "$work/first/model.bin"
cp "$work/first/file01.txt" "$work/second/same.txt"
echo second > "$work/second/new/file.txt"
head -c 60000000 /dev/urandom > "$work/second/model.bin"

"$bin/modeld-test-hub" --repo modeld/TinyVerse-4M="$source/tests/data/TinyVerse-4M" \
  --repo test/odd="$work/odd" --repo test/private="$work/odd" --private test/private \
  --repo test/moving="$work/first" --next test/moving="$work/second" --next test/moving="$work/first" \
  --token hf_interop=test/private --page-size 25 --ready-file "$work/hub.json" > "$work/hub.log" 2>&1 &
hub=$!
started+=("$hub")
wait_for 10 test -s "$work/hub.json"
HF_ENDPOINT=$(sed -E 's/.*"endpoint":"([^"]*)".*/\1/' "$work/hub.json")
export HF_ENDPOINT HF_HOME=$work/home HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_DISABLE_PROGRESS_BARS=1
export NO_PROXY=127.0.0.1,localhost
unset HF_TOKEN HF_HUB_OFFLINE
printf '[store]\nmin_free = 0\nreserve_file = 0\n[hub]\nbandwidth = "40MiB"\n' > "$work/modeld.toml"
start_daemon --config "$work/modeld.toml"

theirs() { # REPO FOLDER [allow-pattern]
  "$python" - "$@" <<'PY'
import sys
from huggingface_hub import snapshot_download
repo, folder, *allow = sys.argv[1:]
snapshot_download(repo, local_dir=folder, allow_patterns=allow or None)
PY
}
same() { # NAME THEIRS OURS
  diff -r --exclude=.cache "$2" "$3"
  [ "$(cd "$2" && find . -name .cache -prune -o -printf '%P\n' | sort)" = \
    "$(cd "$3" && find . -printf '%P\n' | sort)" ]
  echo "$1: $(find "$3" -type f | wc -l) files, the same tree"
}

for repo in modeld/TinyVerse-4M test/odd; do
  theirs "$repo" "$work/theirs-$(basename $repo)"
  same "$repo" "$work/theirs-$(basename $repo)" "$("$bin/modelctl" pull "$repo")"
done
HF_TOKEN=hf_interop theirs test/private "$work/theirs-private"
same test/private "$work/theirs-private" "$(HF_TOKEN=hf_interop "$bin/modelctl" pull test/private)"
theirs test/moving "$work/theirs-some" 'file0*'
same 'test/moving, some' "$work/theirs-some" "$("$bin/modelctl" pull test/moving --include 'file0*')"

# The branch moves in the middle of a download: what each of them began with is what it ends with.
theirs test/moving "$work/theirs-first" &
them=$!
begun() { [ -n "$(find "$work/theirs-first" -name '*.incomplete' 2> /dev/null)" ]; }
wait_for 30 begun
kill -USR1 "$hub"
wait "$them"
diff -r --exclude=.cache "$work/theirs-first" "$work/first"
"$bin/modelctl" pull test/moving > "$work/ours" 2> "$work/err" &
us=$!
downloading() { "$bin/modelctl" jobs | grep -q downloading; }
wait_for 30 downloading
kill -USR1 "$hub"
wait "$us"
diff -r "$(cat "$work/ours")" "$work/second"
echo 'test/moving, while it moves: each has the commit that it began with, whole'

theirs test/moving "$work/theirs-now"
same 'test/moving, moved' "$work/theirs-now" "$("$bin/modelctl" pull test/moving 2> "$work/err")"
grep -q "moved from" "$work/err"
