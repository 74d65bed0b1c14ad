#!/usr/bin/env bash
# A daemon of its own and a thousand connections that ask for the path of a built file: once a second each, ten times a
# second each, and each again as soon as it was answered.
# usage: bench_clients.sh BIN_DIR [CLIENTS] [SECONDS]
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "${1:?usage: bench_clients.sh BIN_DIR [CLIENTS] [SECONDS]}")
. "$here/../support/private_daemon.sh"
start_hub "modeld/TinyVerse-4M=$here/../data/TinyVerse-4M"
start_daemon
"$bin/modelctl" get modeld/TinyVerse-4M:Q8_0 >/dev/null 2>&1
for asks in 1 10 0; do
  "$bin/bench_clients" "$MODELD_SOCKET" modeld/TinyVerse-4M:Q8_0 "${2:-1000}" "${3:-10}" "$asks"
done
