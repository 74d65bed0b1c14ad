"""Loads a GGUF in a real llama.cpp (the wheel xllamacpp) and prints what it generates at temperature 0.

usage: generate.py FILE TOKENS PROMPT...     one line of JSON for each prompt
"""
import json
import sys

import xllamacpp


def main():
    file, tokens, *prompts = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = file
    params.n_ctx = 256
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    for prompt in prompts:
        answer = server.handle_completions(
            {"prompt": prompt, "n_predict": int(tokens), "temperature": 0, "cache_prompt": False})
        print(json.dumps({"prompt": prompt, "text": answer["choices"][0]["text"]}), flush=True)


if __name__ == "__main__":
    main()
