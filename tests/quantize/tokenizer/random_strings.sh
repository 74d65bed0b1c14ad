#!/usr/bin/env bash
# Installs the package `tokenizers` from PyPI into VENV and lets random_strings.py encode with it.
# usage: random_strings.sh VENV GOLDEN TOKENIZERS DEST
set -euo pipefail
here=$(dirname "$(realpath "$0")") venv=${1:?usage: random_strings.sh VENV GOLDEN TOKENIZERS DEST}
if ! "$venv/bin/python" -c 'import tokenizers' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps 'tokenizers==0.22.2'
fi
exec "$venv/bin/python" "$here/random_strings.py" "${@:2}"
