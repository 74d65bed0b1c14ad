# SPDX-License-Identifier: Apache-2.0
"""Byte-level BPE out of a rank file (tiktoken): a line for each token, base64 of its bytes and its rank."""
import base64
import json

VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [b for b in range(256) if b not in VISIBLE]
CHARACTERS = {b: chr(b) for b in VISIBLE} | {b: chr(256 + n) for n, b in enumerate(HIDDEN)}


def text(token):
    return "".join(CHARACTERS[b] for b in token)


def read_ranks(path):
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return dict(sorted(((base64.b64decode(token), int(rank)) for token, rank in lines), key=lambda pair: pair[1]))


def added_token(number, content, special=True, normalized=False):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": normalized, "special": special}


def parts(path, first_added):
    """Vocabulary, merges and added tokens: every split of a token into two known ones is a merge."""
    ranks = read_ranks(path)
    merges = []
    for token, rank in ranks.items():
        splits = [(token[:i], token[i:]) for i in range(1, len(token))]
        known = [(ranks[a], ranks[b], a, b) for a, b in splits if a in ranks and b in ranks]
        merges += [f"{text(a)} {text(b)}" for _, _, a, b in sorted(known)]
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    added = [added_token(first_added + i, name) for i, name in enumerate(names)]
    return {text(token): rank for token, rank in ranks.items()}, merges, added


def last_merge(token, ranks):
    """The two parts that are left of a token when all lower ranks have been merged."""
    left = [bytes([b]) for b in token]
    while len(left) > 2:
        pairs = [(ranks.get(a + b, ranks[token]), i) for i, (a, b) in enumerate(zip(left, left[1:]))]
        rank, i = min(pairs)
        if rank >= ranks[token]:
            raise ValueError(f"{token} cannot be merged")
        left[i:i + 2] = [left[i] + left[i + 1]]
    return left


def slow_files(path):
    """vocab.json and merges.txt of GPT-2."""
    ranks = read_ranks(path)
    vocab = {text(token): rank for token, rank in ranks.items()} | {"<|endoftext|>": len(ranks)}
    merges = [" ".join(map(text, last_merge(token, ranks))) for token in ranks if len(token) > 1]
    return {"vocab.json": json.dumps(vocab, ensure_ascii=False),
            "merges.txt": "\n".join(["#version: 0.2", *merges, ""])}
