# SPDX-License-Identifier: Apache-2.0
"""The vocabulary that a GGUF file of version 2 or 3 keeps."""
import struct

from byte_level import added_token

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
CONTROL, USER_DEFINED, UNUSED = 3, 4, 5


def read(file, letter):
    return struct.unpack("<" + letter, file.read(struct.calcsize("<" + letter)))[0]


def read_value(file, kind):
    if kind == TEXT:
        return file.read(read(file, "Q")).decode("utf-8")
    if kind == ARRAY:
        inner, count = read(file, "I"), read(file, "Q")
        if inner in SCALARS:
            return struct.unpack(f"<{count}{SCALARS[inner]}", file.read(count * struct.calcsize("<" + SCALARS[inner])))
        return [read_value(file, inner) for _ in range(count)]
    return read(file, SCALARS[kind])


def read_metadata(path):
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path}: no GGUF file")
        file.seek(4 + 4 + 8)
        values = {}
        for _ in range(read(file, "Q")):
            key = read_value(file, TEXT)
            values[key] = read_value(file, read(file, "I"))
        return values


def parts(path, family):
    """Vocabulary, merges and added tokens, as tokenizers-rebuilt.json says."""
    values = read_metadata(path)
    tokens = list(enumerate(zip(values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"])))
    added = [added_token(number, token, kind == CONTROL, kind == USER_DEFINED and family == "mpt")
             for number, (token, kind) in tokens if kind in (CONTROL, USER_DEFINED)]
    vocab = {token: number for number, (token, kind) in tokens if kind not in (CONTROL, USER_DEFINED, UNUSED)}
    return vocab, values["tokenizer.ggml.merges"], added
