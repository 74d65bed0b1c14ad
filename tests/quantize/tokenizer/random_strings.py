#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# random_strings.py GOLDEN TOKENIZERS DEST [COUNT]: for each tokenizer of the golden files, DEST/<name>.json (its definition) and
# DEST/<name>.jsonl: COUNT random texts with the ids that the package `tokenizers` gives, [text, ids, ids with special tokens or null].
# The texts are the same in every run.
import json
import pathlib
import random
import sys

import tokenizers

SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x85", "\xa0", "\u1680", "\u180e", "\u2003", "\u2009", "\u200a",
          "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff", "\x1c", "\x1f", " \n ", "\n\n\n", "     "]
WORDS = ["the", "Hello", "WORLD", "don't", "I'll", "we've", "IT'S", "it\u2019s", "x\u017f", "'S", "'re", "naïve", "İstanbul", "ſtraße", "ﬁne", "ǅ",
         "camelCase", "snake_case", "HTTPServer", "a", "I", "e\u0301", "A\u030a", "o\u0323\u0302", "ΑΣ", "Σ", "ß", "ŉ", "İ", "ı", "ﬃ", "Ⅳ", "½", "²", "①", "٣"]
EMOJI = ["😀", "🚀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "🇺🇳🇯🇵", "❤️", "☺︎", "1️⃣", "#️⃣", "🧑🏿‍🦱", "\U0001fae8", "⌚", "✅", "🫠"]
MARKS = ["\u0301", "\u0308", "\u0327", "\u20dd", "\u0338", "\u0345", "\u05b0", "\u064b", "\u093c", "\u094d", "\u0e49", "\u0f71", "\u1dc4", "\u302a",
         "\u3099", "\ufe0e", "\ufe0f", "\ufe20", "\U0001d165", "\U000e0101", "\u034f", "\u035c"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "--", "``", "''", "«", "»", "“", "”", "‘", "’", "…", "—", "¿", "。", "、", "「", "×",
                                                              "€", "№", "™", "°", "¬", "←", "∑", "\u00ad", "·", "§", "‰", "⸺", "〰", "･"]
CONTROLS = ["\x00", "\x01", "\x07", "\x08", "\x0e", "\x1b", "\x7f", "\x80", "\x9f", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066",
            "\u2069", "\ufff9", "\ufffd", "\U000e0041", "\U000e007f"]
UNASSIGNED = ["\u0378", "\u0379", "\u05ff", "\u0e5c", "\u2fe0", "\ua7d2", "\ufdd0", "\uffff", "\U0001fffe", "\U00010000", "\U0002fffe", "\U000e0fff",
              "\U00040000", "\U0010ffff", "\ue000", "\uf8ff", "\U000f0000", "\U00100000"]
RANGES = {
    "latin": [(0x41, 0x5a), (0x61, 0x7a), (0xc0, 0x24f)], "greek and cyrillic": [(0x370, 0x52f)], "hebrew and arabic": [(0x590, 0x77f), (0xfb1d, 0xfdff)],
    "indic": [(0x900, 0xdff)], "south-east asia": [(0xe00, 0x109f), (0x1780, 0x17ff)], "hangul": [(0x1100, 0x11ff), (0xac00, 0xd7a3), (0x3130, 0x318f)],
    "kana": [(0x3040, 0x30ff), (0xff66, 0xff9f)], "han": [(0x4e00, 0x9fff), (0x3400, 0x4dbf), (0xf900, 0xfaff), (0x20000, 0x2a6df), (0x30000, 0x3134a)],
    "symbols": [(0x2000, 0x2bff), (0x3000, 0x303f), (0x1f000, 0x1faff)], "compatibility": [(0x2100, 0x218f), (0x3300, 0x33ff), (0xfb00, 0xfb06), (0xff01, 0xffee)],
    "others": [(0x530, 0x58f), (0x10a0, 0x10ff), (0x1200, 0x139f), (0x13a0, 0x13ff), (0x1400, 0x167f), (0x1e00, 0x1fff), (0x2c00, 0x2dff), (0xa000, 0xabff)],
    # Assigned in Unicode 14 to 16: libraries differ in what they know.
    "new": [(0x897, 0x8d3), (0x1ab0, 0x1aff), (0xa7c0, 0xa7f6), (0x10d40, 0x10d8f), (0x11380, 0x113e2), (0x11bc0, 0x11bf9), (0x11f00, 0x11f5a),
            (0x16100, 0x16139), (0x16d40, 0x16d79), (0x1cc00, 0x1ccf9), (0x1e030, 0x1e08f), (0x1e4d0, 0x1e4f9), (0x1e5d0, 0x1e5ff), (0x1fa70, 0x1fbf9),
            (0x2ebf0, 0x2ee5d), (0x31350, 0x323af)],
    "far": [(0x10000, 0x1ffff)], "any": [(1, 0xd7ff), (0xe000, 0x10ffff)],
}


def characters(rng, count):
    ranges = RANGES[rng.choice(list(RANGES))]
    out = []
    for _ in range(count):
        low, high = rng.choice(ranges)
        out.append(chr(rng.randint(low, high)))
    return "".join(out)


def digits(rng):
    zero = rng.choice([0x30] * 8 + [0x660, 0x966, 0xff10, 0x1d7ce])
    text = "".join(chr(zero + rng.randint(0, 9)) for _ in range(rng.choice([1, 2, 3, 4, 5, 7, 12, 30])))
    return text + rng.choice(["", "", ".5", ",000", "%", "th", "²", "½"])


def added_token(rng, added):
    """A token of the tokenizer's own, whole, cut, doubled, or in other letters; with spaces or words around it."""
    token = rng.choice(added) if added else "<s>"
    kind = rng.randint(0, 7)
    if kind == 0 and len(token) > 1:
        cut = rng.randint(1, len(token) - 1)
        token = rng.choice([token[:cut], token[cut:]])
    elif kind == 1:
        token += token
    elif kind == 2:
        token = rng.choice([token.upper(), token.lower(), token.swapcase()])
    return rng.choice(["", "", " ", "\n ", "a", "_", "é"]) + token + rng.choice(["", "", " ", "  ", "\t", "a", "9", "."])


def fragment(rng, added):
    kind = rng.randint(0, 13)
    if kind <= 1:
        return rng.choice(WORDS)
    if kind == 2:
        return "".join(rng.choice(SPACES) for _ in range(rng.choice([1, 1, 2, 3])))
    if kind == 3:
        return " "
    if kind == 4:
        return digits(rng)
    if kind == 5:
        return rng.choice(EMOJI) * rng.choice([1, 1, 2])
    if kind == 6:
        return characters(rng, rng.randint(1, 3)) + "".join(rng.choice(MARKS) for _ in range(rng.choice([1, 1, 2, 5])))
    if kind == 7:
        return rng.choice(PUNCTUATION) * rng.choice([1, 1, 1, 2, 3, 9])
    if kind == 8:
        return rng.choice(CONTROLS + UNASSIGNED)
    if kind <= 10:
        return added_token(rng, added)
    return characters(rng, rng.choice([1, 2, 3, 5, 8, 20]))


def texts(seed, added, count):
    rng = random.Random(seed)
    for i in range(count):
        length = rng.choice([1, 2, 3, 4, 6, 9, 14])
        if i % 500 == 499:
            length = 300
        text = "".join(fragment(rng, added) for _ in range(length))
        if i % 1000 == 999:
            text += rng.choice(["a", " ", "ab", "1", "é", "\n", "漢"]) * 3000
        yield text


def definitions(golden, folder):
    """(name, definition) of every tokenizer."""
    tiny = json.loads((golden / "tiny-tokenizers.json").read_text(encoding="utf-8"))
    for kind in tiny["kinds"]:
        for file in ("tokenizer.json", "tokenizer.converted.json"):
            path = golden / kind["folder"] / file
            if path.exists():
                yield f"{kind['kind']}-{path.stem}", json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(folder.glob("*/tokenizer.json")):
        yield path.parent.name, json.loads(path.read_text(encoding="utf-8"))
    for variant in tiny["variants"]:
        if variant["name"] == "unicode-scripts":
            continue  # its table of scripts is of an old Unicode, ours is not; no model in use cuts so
        base = json.loads((golden / variant["base"]).read_text(encoding="utf-8"))
        yield f"variant-{variant['name']}".replace("/", "-"), base | variant["set"]


def write(name, definition, dest, count):
    definition = definition | {"truncation": None, "padding": None}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(definition))
    added = [token["content"] for token in definition.get("added_tokens", [])]
    (dest / f"{name}.json").write_text(json.dumps(definition, ensure_ascii=False), encoding="utf-8")
    with (dest / f"{name}.jsonl").open("w", encoding="utf-8") as out:
        for i, text in enumerate(texts(name, added, count)):
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            special = tokenizer.encode(text).ids if i % 10 == 0 else None
            out.write(json.dumps([text, plain, special], ensure_ascii=True) + "\n")


def main():
    golden, folder, dest = map(pathlib.Path, sys.argv[1:4])
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 10000
    dest.mkdir(parents=True, exist_ok=True)
    for name, definition in definitions(golden, folder):
        if not (dest / f"{name}.{count}.done").exists():
            write(name, definition, dest, count)
            (dest / f"{name}.{count}.done").touch()


main()
