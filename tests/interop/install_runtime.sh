#!/usr/bin/env bash
# Installs a real llama.cpp (the PyPI wheel xllamacpp) into the build folder, for the interop tests.
# usage: install_runtime.sh FOLDER
set -euo pipefail
venv=${1:?usage: install_runtime.sh FOLDER}
"$venv/bin/python" -c 'import xllamacpp' 2>/dev/null && exit 0
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check 'xllamacpp==2026.10.11549'
"$venv/bin/python" -c 'import xllamacpp'
