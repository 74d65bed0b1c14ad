#!/usr/bin/env python3
"""Runs the reference's converter on variants of golden cases and writes what comes out into their list.

usage: record_variants.py REFERENCE GOLDEN VARIANTS.json [--only TEXT] [--keep FOLDER] [--out FILE]

REFERENCE is a checkout of llama.cpp v0.4.0 whose Python packages are installed; GOLDEN is tests/golden. A variant (its
fields: variant.hpp) gets "sha256", or "error" where the reference refuses. --keep keeps the files, named by their place.
"""
import argparse, base64, contextlib, hashlib, json, logging, os, shutil, sys, tempfile, zlib
from pathlib import Path

def load_tensors(materialize, case):
    out = []
    for f in json.loads((case / "weights.json").read_text()):
        if not is_weights(f["file"]): continue
        for name, t in json.loads(f["header"]).items():
            if name == "__metadata__": continue
            kept = f["kept_zlib_base64"].get(name)
            size = t["data_offsets"][1] - t["data_offsets"][0]
            data = zlib.decompress(base64.b64decode(kept)) if kept else None
            if data is None and t["dtype"] not in ("F64", "F32", "F16", "BF16"): data = bytes(size)
            out.append({"name": name, "dtype": t["dtype"], "shape": t["shape"], "kept": data})
    return out

def is_weights(path):
    return path.startswith("model") and "/" not in path and path.endswith((".safetensors", ".safetensors.index.json"))

def like(pattern, name):
    parts = pattern.split("*")
    if len(parts) == 1: return pattern == name
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]) or len(name) < len(parts[0]) + len(parts[-1]): return False
    at = len(parts[0])
    for part in parts[1:-1]:
        at = name.find(part, at)
        if at < 0: return False
        at += len(part)
    return at <= len(name) - len(parts[-1])

def change(tensors, op):
    if "drop" in op: return [t for t in tensors if not like(op["drop"], t["name"])]
    if "add" in op: return tensors + [{"name": op["add"], "dtype": op["dtype"], "shape": op["shape"], "kept": None}]
    if "set" in op:
        hits = [t for t in tensors if like(op["set"], t["name"])]
        if not hits: raise SystemExit(f"no tensor is like {op['set']}")
        for t in hits:
            t["kept"] = None
            t.update({k: op[k] for k in ("dtype", "shape") if k in op})
        return tensors
    if "copy" in op:
        return tensors + [dict(t, name=t["name"].replace(op["copy"], op["to"])) for t in tensors if op["copy"] in t["name"]]
    for t in tensors: t["name"] = t["name"].replace(op["replace"], op["with"])
    return tensors

def write_weights(materialize, tensors, shards, target):
    for path in target.iterdir():
        if is_weights(path.name): path.unlink()
    tensors = sorted(tensors, key=lambda t: t["name"].encode())
    where = {}
    for i in range(shards):
        part = tensors[len(tensors) * i // shards:len(tensors) * (i + 1) // shards]
        file = "model.safetensors" if shards == 1 else f"model-{i + 1:05}-of-{shards:05}.safetensors"
        header, body = {"__metadata__": {"format": "pt"}}, b""
        for t in part:
            data = t["kept"] if t["kept"] is not None else materialize.encode(materialize.values(t["name"], t["shape"]), t["dtype"])
            header[t["name"]] = {"dtype": t["dtype"], "shape": t["shape"], "data_offsets": [len(body), len(body) + len(data)]}
            where[t["name"]] = file
            body += data
        head = json.dumps(header).encode()
        (target / file).write_bytes(len(head).to_bytes(8, "little") + head + body)
    if shards > 1: (target / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))

def edit_files(variant, target):
    def place(root, path):
        *outer, last = path.split("/")
        for name in outer:
            if not isinstance(root.get(name), dict): root[name] = {}
            root = root[name]
        return root, last
    for kind in ("edit", "unset"):
        for one in variant.get(kind, []):
            path = target / one[0]
            root = json.loads(path.read_text()) if path.exists() else {}
            at, last = place(root, one[1])
            if kind == "edit": at[last] = one[2]
            else: at.pop(last, None)
            path.write_text(json.dumps(root))
    for name, text in variant.get("write", {}).items(): (target / name).write_text(text)
    for name in variant.get("remove", []): (target / name).unlink(missing_ok=True)

def materialize_variant(materialize, golden, variant, folder):
    case = golden / variant["case"]
    expected = json.loads((case / "expected.json").read_text())
    with contextlib.redirect_stdout(open(os.devnull, "w")): materialize.materialize(case, folder)
    target = folder / expected["model_dir"]
    if "dir" in variant: target = target.rename(folder / variant["dir"])
    edit_files(variant, target)
    if "tensors" in variant or "shards" in variant:
        tensors = load_tensors(materialize, case)
        for op in variant.get("tensors", []): tensors = change(tensors, op)
        write_weights(materialize, tensors, variant.get("shards", 1), target)
    return target, expected.get("pre")

def convert(variant, target, pre, out):
    """In a process of its own: the reference keeps state in its classes."""
    import convert_hf_to_gguf
    from conversion.base import TextModel
    if pre: TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    sys.argv = ["convert_hf_to_gguf.py", str(target), "--outfile", str(out), *variant["argv"]]
    convert_hf_to_gguf.main()

def run(materialize, golden, variant, keep):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target, pre = materialize_variant(materialize, golden, variant, folder)
        out, log = folder / "out.gguf", folder / "log"
        pid = os.fork()
        if pid == 0:
            fd = os.open(log, os.O_WRONLY | os.O_CREAT)
            os.dup2(fd, 1); os.dup2(fd, 2)
            status = 1
            try:
                convert(variant, target, pre, out)
                status = 0
            except SystemExit as e:
                print(f"\nexit: {e.code}", flush=True)
            except BaseException as e:
                print(f"\n{type(e).__name__}: {e}", flush=True)
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for key in ("sha256", "error"): variant.pop(key, None)
        if status == 0 and out.exists():
            variant["sha256"] = hashlib.sha256(out.read_bytes()).hexdigest()
            if keep: shutil.copy(out, keep)
        else:
            lines = [l for l in log.read_text(errors="replace").splitlines() if l.strip()]
            variant["error"] = lines[-1][:200] if lines else f"exit status {status}"

def warm_up(materialize, golden):
    """One conversion here, so that the processes that follow find everything imported."""
    with tempfile.TemporaryDirectory() as name:
        variant = {"case": "Tiny-Qwen3-0.6M", "argv": ["--outtype", "f16"]}
        target, _ = materialize_variant(materialize, golden, variant, Path(name))
        from conversion.base import TextModel
        kept = TextModel.get_vocab_base_pre
        convert(variant, target, "qwen2", Path(name) / "out.gguf")
        TextModel.get_vocab_base_pre = kept
    logging.getLogger().handlers.clear()

def write_list(variants, path):
    lines = [json.dumps(v, ensure_ascii=False) for v in variants]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("reference", "golden", "variants"): parser.add_argument(name, type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sys.path[:0] = [str(args.reference), str(args.golden)]
    import materialize, torch, transformers, conversion, convert_hf_to_gguf  # before forking
    torch.set_num_threads(1)
    warm_up(materialize, args.golden)
    variants = json.loads(args.variants.read_text())
    for i, variant in enumerate(variants):
        if args.only not in f"{variant['case']}: {variant['name']}": continue
        run(materialize, args.golden, variant, args.keep and args.keep / f"{i}.gguf")
        print(i, variant["case"], variant["name"], variant.get("error", "ok"), flush=True)
    write_list(variants, args.out or args.variants)

if __name__ == "__main__": main()
