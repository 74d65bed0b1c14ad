#!/usr/bin/env bash
# `make install` puts exactly the listed files in their places.
set -euo pipefail
build=${1:?usage: install_test.sh BUILD_DIR LIST} list=${2:?}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

DESTDIR=$root cmake --install "$build" >"$root.log" || { cat "$root.log"; exit 1; }
rm -f "$root.log"
(cd "$root" && find . -type f -printf '%m %P\n' | LC_ALL=C sort -k2) >"$root/installed"
diff -u <(grep -v '^#' "$list") <(grep -v ' installed$' "$root/installed") || {
  echo "the files that were installed (+) are not those of $list (-)"
  exit 1
}

# The units must be ones that systemd accepts, where it is here to ask.
if command -v systemd-analyze >/dev/null; then
  mkdir -p "$root/usr/lib/systemd/system"
  for unit in system user; do
    flag=--system; [ $unit = user ] && flag=--user
    SYSTEMD_UNIT_PATH="$root/usr/lib/systemd/$unit:/usr/lib/systemd/$unit" \
      systemd-analyze verify $flag --man=no "$root/usr/lib/systemd/$unit/modeld.service" 2>&1 |
      grep -v 'Command .*modeld is not executable' | grep modeld && exit 1
  done
fi
exit 0
