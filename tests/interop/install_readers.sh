#!/usr/bin/env bash
# Installs huggingface_hub and transformers (without a framework) into the build folder, for the interop tests.
# usage: install_readers.sh FOLDER
set -euo pipefail
venv=${1:?usage: install_readers.sh FOLDER}
"$venv/bin/python" -c 'import transformers, safetensors, sentencepiece, google.protobuf' 2>/dev/null && exit 0
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check 'transformers==4.57.6' safetensors numpy 'sentencepiece==0.2.0' 'protobuf<5'
"$venv/bin/python" -c 'import transformers, safetensors, sentencepiece, google.protobuf'
