# For scripts: a local Hub and a daemon of one's own, under one folder, stopped and removed at the end.
# Source it, then call start_hub and start_daemon. Needs $bin, the folder of the programs.

work=$(mktemp -d "${TMPDIR:-/tmp}/modeld-XXXXXX")
started=()

stop_all() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap stop_all EXIT
trap 'exit 130' INT TERM

# wait_for SECONDS COMMAND...: until the command succeeds; fails after that time.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.02
  done
}

# start_hub org/name=DIR...: sets HF_ENDPOINT, and hub_ready (the line of JSON with the commits).
start_hub() {
  local repo repos=()
  for repo in "$@"; do repos+=(--repo "$repo"); done
  "$bin/modeld-test-hub" "${repos[@]}" --ready-file "$work/hub.json" >"$work/hub.log" 2>&1 &
  started+=($!)
  wait_for 10 test -s "$work/hub.json" || { cat "$work/hub.log" >&2; return 1; }
  hub_ready=$(cat "$work/hub.json")
  HF_ENDPOINT=$(sed -E 's/.*"endpoint":"([^"]*)".*/\1/' <<<"$hub_ready")
  export HF_ENDPOINT
}

# commit_of org/name: the commit of its main branch.
commit_of() {
  grep -oE "\{\"repo\":\"$1\",\"ref\":\"main\",\"commit\":\"[0-9a-f]{40}" <<<"$hub_ready" | grep -oE '[0-9a-f]{40}$'
}

# start_daemon [ARGS...]: sets MODELD_SOCKET.
start_daemon() {
  export MODELD_SOCKET=$work/modeld.sock
  "$bin/modeld" --root "$work/store" --socket "$MODELD_SOCKET" --foreground "$@" 2>"$work/modeld.log" &
  started+=($!)
  wait_for 10 "$bin/modelctl" health || { cat "$work/modeld.log" >&2; return 1; }
}
