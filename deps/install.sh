#!/usr/bin/env bash
# Installs what the build and the tests need from Debian 12's packages: as root, or by sudo. Does nothing where all is there.
# usage: install.sh [LIST]      debian.txt; another list has what only some target of make needs. Names of other
# architectures (package:arm64) are not for this machine and are passed over.
set -euo pipefail
here=$(dirname "$(realpath "$0")")

mapfile -t wanted < <(grep -vE '^#|:' "$here/${1:-debian.txt}")
# The tests with real clients need Node.js; one that came another way is as good.
command -v node >/dev/null && command -v npm >/dev/null || wanted+=(nodejs npm)

missing=()
for package in "${wanted[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "error: these packages are missing and there is neither root nor sudo to install them: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
