#!/usr/bin/env bash
# Builds a real Ollama server (v0.12.6) out of its Go module, for `make interop`. The module lacks headers of the code
# that it has copied; they come from Debian's and PyPI's packages, unpacked and not installed. Prints the path of the program.
# Needs go and a network; five minutes on two idle cores.
# usage: get_ollama.sh DIR
set -euo pipefail
dir=$(realpath -m "${1:?usage: get_ollama.sh DIR}")
version=v0.12.6
program=$dir/bin/ollama
if [ -x "$program" ]; then echo "$program"; exit 0; fi
command -v go >/dev/null || { echo "error: go is needed to build Ollama" >&2; exit 1; }
mkdir -p "$dir/include"
cd "$dir"

if [ ! -d debian/usr/include ]; then
  mkdir -p debian
  (cd debian && apt-get download -qq nlohmann-json3-dev libstb-dev >&2 && for deb in *.deb; do dpkg -x "$deb" .; done)
fi
if [ ! -f include/miniaudio/miniaudio.h ]; then
  python3 -m pip download -q --no-deps --no-binary miniaudio miniaudio==1.71 -d . >&2
  tar xzf miniaudio-1.71.tar.gz
  cp -r miniaudio-1.71/miniaudio include/
fi

flags="-O1 -I$dir/include -I$dir/debian/usr/include -I$dir/debian/usr/include/stb"
GOBIN="$dir/bin" GOFLAGS=-buildvcs=false CGO_CFLAGS="$flags" CGO_CXXFLAGS="$flags" \
  go install "github.com/ollama/ollama@$version" >build.log 2>&1 || { tail -20 build.log >&2; exit 1; }
echo "$program"
