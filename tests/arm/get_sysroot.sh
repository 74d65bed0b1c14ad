#!/usr/bin/env bash
# Unpacks the arm64 libraries of deps/debian-arm.txt into BUILD_DIR/sysroot. The packages of this machine stay as they
# are: apt keeps lists of its own for it, below BUILD_DIR.
# usage: get_sysroot.sh BUILD_DIR
set -euo pipefail
here=$(dirname "$(realpath "$0")")
mkdir -p "${1:?usage: get_sysroot.sh BUILD_DIR}"
dir=$(realpath "$1")
[ ! -f "$dir/sysroot/complete" ] || exit 0

mapfile -t wanted < <(grep -E '^[^#].*:(arm64|all)$' "$here/../../deps/debian-arm.txt")
rm -rf "$dir/sysroot"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/apt/packages" "$dir/sysroot"
options=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=
  -o Dir::State::lists="$dir/apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$dir/apt/cache")
apt-get "${options[@]}" update
(cd "$dir/apt/packages" && apt-get "${options[@]}" download "${wanted[@]}")
for package in "$dir"/apt/packages/*.deb; do
  dpkg-deb -x "$package" "$dir/sysroot"
done
rm -rf "$dir/apt"
touch "$dir/sysroot/complete"
