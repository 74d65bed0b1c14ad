#!/usr/bin/env bash
# A pull and a build from a Hub that speaks HTTP/2 only, behind a certificate of its own: every request
# goes over h2, large files in ranges too, and the file is the right one.
#   usage: http2_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=${1:?usage: http2_test.sh BUILD_DIR SOURCE_DIR}
source=${2:?usage: http2_test.sh BUILD_DIR SOURCE_DIR}
bin=$build/bin
venv=$build/interop/http2
if [ ! -e "$venv.ready" ]; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check 'h2>=4.1,<5'
  touch "$venv.ready"
fi
. "$source/tests/support/private_daemon.sh"
mkdir -p "$work/large"
head -c 40000000 /dev/urandom > "$work/large/model.bin"
start_hub modeld/TinyVerse-4M="$source/tests/data/TinyVerse-4M" test/large="$work/large"
storage=$(sed -E 's/.*"data_endpoint":"([^"]*)".*/\1/' <<<"$hub_ready")
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=front \
  -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/ca.pem" 2> /dev/null
"$venv/bin/python" "$source/tests/interop/http2_front.py" "$work/ca.pem" "$work/key.pem" \
  "$HF_ENDPOINT" "$storage" "$work/front" "$work/front.log" &
started+=($!)
wait_for 20 test -s "$work/front"
HF_ENDPOINT=$(head -n 1 "$work/front")
export HF_ENDPOINT NO_PROXY=127.0.0.1
printf '[store]\nmin_free = 0\nreserve_file = 0\n[hub]\nca_bundle = "%s"\n' "$work/ca.pem" > "$work/modeld.toml"
start_daemon --config "$work/modeld.toml"

folder=$("$bin/modelctl" pull test/large)
cmp "$folder/model.bin" "$work/large/model.bin"
path=$("$bin/modelctl" get modeld/TinyVerse-4M:Q8_0)
grep -q "$(sha256sum < "$path" | cut -d' ' -f1)" "$source/tests/data/TinyVerse-4M.expected.json"
requests=$(wc -l < "$work/front.log")
[ "$requests" -ge 12 ]
if grep -v '^h2 ' "$work/front.log"; then echo 'a request did not go over HTTP/2' >&2; exit 1; fi
echo "$requests requests over HTTP/2, $(cut -d' ' -f2,3 "$work/front.log" | sort -u | wc -l) connections of an origin at most"
