#!/usr/bin/env python3
"""Changes every kind of file that shardwright reads, one small change after the other, and looks at the answers.

    mutate.py PROGRAM [--data tests/data ...] [--count 3000] [--seconds 600] [--seed 1] [--keep FOLDER]

A crash, an answer that takes over 10 s or over 1 GB of memory, and "clean" where the real reader (pickle, torch, safetensors)
refuses the same bytes are kept in FOLDER with the change that was made. It needs torch and safetensors. It is a long run: CI
does not do it.
"""
import argparse
import collections
import json
import os
import pickle
import pickletools
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

MOST_SECONDS, MOST_BYTES = 10, 1 << 30
ODD_INTEGERS = [0, 1, -1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1]
ODD_TEXTS = [b"", b"a" * 20, b"\xff\xfe", b"../x", b"/etc/passwd", b"\x1b[2J", "é‮x".encode(), b"nan", b"w"]


# --- bytes of any kind ---------------------------------------------------------------------------

def bent_bytes(dice, data):
    if not data:
        return b"x", "one byte"
    kind = dice.choice(["flip", "cut", "zero", "insert", "double", "append"])
    at = dice.randrange(len(data))
    length = dice.choice([1, 2, 8, 64])
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1:], f"flip@{at}"
    if kind == "cut":
        return data[:at], f"cut@{at}"
    if kind == "zero":
        return data[:at] + bytes(min(length, len(data) - at)) + data[at + length:], f"zero@{at}+{length}"
    if kind == "insert":
        return data[:at] + dice.randbytes(length) + data[at:], f"insert@{at}+{length}"
    if kind == "double":
        return data[:at] + data[at:at + length] + data[at:], f"double@{at}+{length}"
    return data + dice.randbytes(length), f"append+{length}"


# --- pickles -------------------------------------------------------------------------------------

def integer_opcode(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    digits = value.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(digits)]) + digits


def bent_pickle(dice, data):
    try:
        ops = [(op, arg, at) for op, arg, at in pickletools.genops(data)]
    except Exception:
        return bent_bytes(dice, data)
    which = dice.randrange(len(ops))
    op, arg, at = ops[which]
    end = ops[which + 1][2] if which + 1 < len(ops) else len(data)
    kind = dice.choice(["value", "value", "value", "delete", "repeat", "opcode", "swap", "bytes"])
    if kind == "bytes":
        return bent_bytes(dice, data)
    if kind == "delete":
        return data[:at] + data[end:], f"delete {op.name}@{at}"
    if kind == "repeat":
        return data[:end] + data[at:end] + data[end:], f"repeat {op.name}@{at}"
    if kind == "opcode":
        return data[:at] + bytes([dice.choice(b"().012FIJKLMNPQRSTUVXabcdeghijlopqrstu]}\x80\x81\x85\x8a\x8c\x93\x94\x95")]) + data[at + 1:], f"opcode@{at}"
    if kind == "swap":
        other = dice.randrange(len(ops))
        a, b = sorted([which, other])
        if a == b:
            return bent_bytes(dice, data)
        a0, a1, b0 = ops[a][2], ops[a + 1][2], ops[b][2]
        b1 = ops[b + 1][2] if b + 1 < len(ops) else len(data)
        return data[:a0] + data[b0:b1] + data[a1:b0] + data[a0:a1] + data[b1:], f"swap@{a0},{b0}"
    if op.name == "FRAME":
        length = arg ^ 1 << dice.randrange(0, 20)
        return data[:at + 1] + struct.pack("<Q", length) + data[end:], f"frame@{at}={length}"
    if isinstance(arg, int) and "INT" in op.name or op.name == "LONG1":
        value = dice.choice(ODD_INTEGERS + [arg + 1, arg - 1])
        return data[:at] + integer_opcode(value) + data[end:], f"int@{at}={value}"
    if "GET" in op.name or "PUT" in op.name:
        if end - at == 2:
            return data[:at + 1] + bytes([dice.randrange(256)]) + data[end:], f"memo@{at}"
        return data[:at + 1] + struct.pack("<I", dice.choice([0, 7, 2**30, 2**32 - 1])) + data[end:], f"memo@{at}"
    if "UNICODE" in op.name:
        text = dice.choice(ODD_TEXTS)
        return data[:at] + b"X" + struct.pack("<I", len(text)) + text + data[end:], f"str@{at}={text!r}"
    return data[:at] + dice.choice([b"N", b"}", b"]", b")", b"K\x01", b"\x88"]) + data[end:], f"value {op.name}@{at}"


# --- JSON ----------------------------------------------------------------------------------------

def places_in(tree, found, holder=None, key=None):
    if holder is not None:
        found.append((holder, key))
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for at, value in list(items):
        places_in(value, found, tree, at)


def bent_json(dice, data):
    kind = dice.choice(["tree", "tree", "tree", "deep", "utf8", "mark", "zero", "twice", "bytes"])
    if kind == "deep":
        depth = dice.choice([100, 130, 5000, 100_000])
        at = data.rfind(b"}")
        nested = b"[" * depth + b"]" * depth
        return (data[:at] + b', "x": ' + nested + b"}", f"deep {depth}") if at > 0 else (nested, f"deep {depth}")
    if kind == "utf8":
        at = data.find(b'"', dice.randrange(max(1, len(data)))) + 1
        return data[:at] + b"\xff\x9b" + data[at:], f"not UTF-8@{at}"
    if kind == "mark":
        return b"\xef\xbb\xbf" + data, "byte order mark"
    if kind == "zero":
        return data + b"\0{", "zero byte"
    try:
        tree = json.loads(data)
    except Exception:
        return bent_bytes(dice, data)
    found = []
    places_in(tree, found)
    if not found or kind == "bytes":
        return bent_bytes(dice, data)
    holder, key = dice.choice(found)
    if kind == "twice" and isinstance(holder, dict):
        text = json.dumps(tree)
        name = json.dumps(key) + ": "
        at = text.find(name)
        return (text[:at] + name + "null, " + text[at:]).encode(), f"twice {key}"
    odd = dice.choice([None, True, "", [], {}, -1, 1e400, 2**64, 2**63 - 1, 0, "\x7f\x9b‮", [[]] * 3, {"a": 1}])
    if dice.random() < 0.2:
        del holder[key]
        return json.dumps(tree).encode(), f"delete {key}"
    holder[key] = odd
    return json.dumps(tree).encode(), f"{key}={odd!r}"


# --- files that hold these -----------------------------------------------------------------------

def bent_safetensors(dice, data):
    if len(data) < 8:
        return bent_bytes(dice, data)
    length = struct.unpack("<Q", data[:8])[0]
    if dice.random() < 0.3 or length > len(data):
        return bent_bytes(dice, data)
    header, what = bent_json(dice, data[8:8 + length])
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data[8 + length:], what


def bent_zip(dice, data):
    """One archive of torch.save, rewritten with right checksums."""
    import io
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        records = [[info.filename, archive.read(info)] for info in archive.infolist()]
    except Exception:
        return bent_bytes(dice, data)
    kind = dice.choice(["pickle", "pickle", "pickle", "drop", "record", "name", "bytes"])
    if kind == "bytes":
        return bent_bytes(dice, data)
    which = dice.randrange(len(records))
    if kind == "pickle":
        which = next((i for i, one in enumerate(records) if one[0].endswith("data.pkl")), which)
        records[which][1], what = bent_pickle(dice, records[which][1])
    elif kind == "drop":
        what = "drop " + records.pop(which)[0]
    elif kind == "record":
        records[which][1], what = bent_bytes(dice, records[which][1])
        what = records[which][0] + " " + what
    else:
        what = "rename " + records[which][0]
        records[which][0] += "x"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as written:
        for name, content in records:
            written.writestr(name, content)
    return out.getvalue(), what


def bent_items(dice, data):
    """A .distcp: a change inside of an item that keeps its length, with its checksum set right."""
    at = data.find(b"PK\x03\x04", dice.randrange(max(1, len(data))))
    if at < 0 or dice.random() < 0.3:
        return bent_bytes(dice, data)
    _, _, flags, method, _, _, _, _, size, name, extra = struct.unpack("<IHHHHHIIIHH", data[at:at + 30])
    begin = at + 30 + name + extra
    mark = data.find(b"PK\x07\x08", begin)
    if method != 0 or mark < 0 or mark == begin:
        return bent_bytes(dice, data)
    content = bytearray(data[begin:mark])
    place = dice.randrange(len(content))
    content[place] = dice.randrange(256)
    old, new = struct.pack("<I", zlib.crc32(data[begin:mark])), struct.pack("<I", zlib.crc32(content))
    out = data[:begin] + bytes(content) + data[mark:]
    return out.replace(old, new), f"item byte@{begin + place}, checksum right"


def bender_of(name, data):
    if name.endswith(".metadata"):
        return bent_pickle
    if name.endswith((".json", ".jsonl")):
        return bent_json
    if name.endswith(".safetensors"):
        return bent_safetensors
    if data[:2] == b"PK" and data.count(b"PK\x05\x06") == 1:
        return bent_zip
    if name.endswith(".distcp"):
        return bent_items
    return bent_bytes


# --- the real readers ----------------------------------------------------------------------------

class Careful(pickle.Unpickler):
    def find_class(self, module, name):
        if module.split(".")[0] not in ("torch", "collections", "pathlib", "datetime"):
            raise pickle.UnpicklingError(f"{module}.{name} is not loaded here")
        if module == "pathlib._local":  # of Python 3.13
            module = "pathlib"
        return super().find_class(module, name)


def refused(folder, name):
    """Why the real reader refuses that file; None where it takes it or where there is none."""
    import torch
    path = os.path.join(folder, name)
    try:
        if name.endswith(".metadata"):
            with open(path, "rb") as file:
                Careful(file).load()
        elif name.endswith((".pt", ".bin", ".pth")):
            torch.load(path, map_location="cpu", weights_only=True)
        elif name.endswith(".safetensors"):
            from safetensors import safe_open
            with safe_open(path, "pt") as file:
                for key in file.keys():
                    file.get_tensor(key)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


# --- runs ----------------------------------------------------------------------------------------

def run(program, arguments, folder):
    begin = time.monotonic()
    out = tempfile.TemporaryFile()
    child = subprocess.Popen([program, *arguments], stdout=out, stderr=subprocess.DEVNULL, cwd=folder)
    status = usage = None
    while status is None:
        pid, code, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            status = code
        elif time.monotonic() - begin > MOST_SECONDS:
            child.send_signal(signal.SIGKILL)
            os.wait4(child.pid, 0)
            child.returncode = -9
            return "hang", b""
        else:
            time.sleep(0.002)
    child.returncode = 0
    out.seek(0)
    text = out.read()
    if os.WIFSIGNALED(status):
        return f"crash by signal {os.WTERMSIG(status)}", text
    if usage.ru_maxrss * 1024 > MOST_BYTES:
        return f"{usage.ru_maxrss >> 10} MiB", text
    return "", text


def verdict_of(text):
    try:
        return json.loads(text).get("verdict")
    except Exception:
        return None


def size_of(folder):
    return sum(os.path.getsize(os.path.join(at, one)) for at, _, names in os.walk(folder) for one in names)


def worlds_in(folders_of_data):
    for data in folders_of_data:
        for at, folders, _ in os.walk(data):
            if "ckpt" in folders and size_of(os.path.join(at, "ckpt")) < 2 << 20:
                yield at


def journal_of(program, checkpoint, out):
    """A half-made result: the run is killed as soon as its journal says something. (its folder, the journal's name)"""
    result = os.path.join(out, "half")
    for pause in (0.02, 0.04, 0.06, 0.1):
        child = subprocess.Popen([program, "convert", checkpoint, "--to", "safetensors", "--shard-size", "64",
                                  "--out", result, "--yes"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause)
        child.kill()
        child.wait()
        for at, _, names in os.walk(out):
            for one in names:
                if "journal" in one and os.path.getsize(os.path.join(at, one)):
                    return at, one
        shutil.rmtree(result, ignore_errors=True)
    return None


def texts_beside(program, world, out):
    """A plan, a certificate and a journal of that world, made by the program: (name, text, how it is read)."""
    checkpoint = os.path.join(world, "ckpt")
    made = []
    _, plan = run(program, ["plan", checkpoint, "--json"], out)
    if plan.startswith(b"{"):
        made.append(("plan.json", plan, ["plan", "CKPT", "--plan", "FILE", "--json"]))
    spec = os.path.join(world, "spec.json")
    if os.path.exists(spec):
        made.append(("spec.json", open(spec, "rb").read(), ["check", "CKPT", "--spec", "FILE", "--json"]))
    _, answer = run(program, ["check", checkpoint, "--json"], out)
    made.append(("baseline.json", answer, ["check", "CKPT", "--baseline", "FILE", "--json"]))
    made.append(("placements.json", b'{"*": ["Shard(0)"]}',
                 ["reshard", "CKPT", "--mesh", "dp=2", "--placements", "FILE", "--plan-only", "--json"]))
    made.append(("steps.json", b'{"schema": "shardwright/2", "steps": [{"step": "drop", "tensors": ["w"]}]}',
                 ["plan", "CKPT", "--plan", "FILE", "--json"]))
    for name, text in (("shardwright.toml", b'# what is known\nignore = ["portability", "value-statistics"]\n'),
                       ("pyproject.toml", b'[tool.shardwright]\nignore = [\n  "portability",\n]\n[tool.other]\n')):
        made.append((name, text, ["check", "CKPT", "--json"]))
    policy = b'{"require": ["coverage", "finite", "optimizer-complete"]}'
    made.append(("policy.json", policy, ["check", "CKPT", "--policy", "FILE", "--json"]))
    copy = os.path.join(out, "converted")
    run(program, ["convert", checkpoint, "--to", "safetensors", "--out", copy, "--yes"], out)
    certificate = os.path.join(copy, "certificate.json")
    if os.path.exists(certificate):
        made.append(("certificate.json", open(certificate, "rb").read(), ["verify", "IN_COPY", "--json"]))
    return made, copy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--data", nargs="+", default=["tests/data"])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="mutants")
    parser.add_argument("--only", default="", help="names of files that end so")
    options = parser.parse_args()
    program, dice = os.path.abspath(options.program), random.Random(options.seed)
    import torch, torch.distributed.checkpoint.metadata  # noqa: F401, E401
    worlds = sorted(worlds_in(options.data))
    beside, taken, counts, end = {}, {}, collections.Counter(), time.monotonic() + options.seconds
    work = tempfile.mkdtemp(prefix="mutate-")
    number, half = 0, None
    for world in worlds[:40]:
        half = half or journal_of(program, os.path.join(world, "ckpt"), tempfile.mkdtemp(dir=work))
    while number < options.count and time.monotonic() < end:
        number += 1
        world = dice.choice(worlds)
        here = os.path.join(work, "now")
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(os.path.join(world, "ckpt"), os.path.join(here, "ckpt"), symlinks=True)
        for at, _, names in os.walk(here):
            os.chmod(at, 0o700)
            for one in names:
                if not os.path.islink(os.path.join(at, one)):
                    os.chmod(os.path.join(at, one), 0o600)
        if half and not options.only and dice.random() < 0.03:
            folder, name = half
            partial = os.path.join(here, os.path.basename(folder))
            shutil.copytree(folder, partial)
            with open(os.path.join(partial, name), "rb") as file:
                text, what = (bent_json if dice.random() < 0.5 else bent_bytes)(dice, file.read())
            with open(os.path.join(partial, name), "wb") as file:
                file.write(text)
            commands, read = [["resume", os.path.basename(folder), "--json"]], None
        elif not options.only and dice.random() < 0.25:
            if world not in beside:
                folder = os.path.join(work, f"beside-{len(beside)}")
                os.mkdir(folder)
                beside[world] = texts_beside(program, world, folder)
            made, copy = beside[world]
            name, text, command = dice.choice(made)
            text, what = (bent_json if name.endswith(".json") else bent_bytes)(dice, text)
            target = os.path.join(here, name)
            if "IN_COPY" in command:
                shutil.copytree(copy, os.path.join(here, "copy"))
                target = os.path.join(here, "copy", name)
            with open(target, "wb") as file:
                file.write(text)
            words = {"CKPT": "ckpt", "FILE": name, "IN_COPY": "copy"}
            commands, read = [[words.get(word, word) for word in command]], None
        else:
            names = sorted(os.path.relpath(os.path.join(at, one), here) for at, _, found in os.walk(here) for one in found
                           if one.endswith(options.only))
            if not names:
                number -= 1
                continue
            name = dice.choice([one for one in names if one.endswith((".metadata", ".json"))] or names
                               if dice.random() < 0.5 else names)
            with open(os.path.join(here, name), "rb") as file:
                data = file.read()
            # What the real reader refuses as it is (classes of DeepSpeed) says nothing when it is changed.
            if (world, name) not in taken:
                taken[world, name] = refused(here, name) is None
            bender = bender_of(name, data) if dice.random() < 0.9 else bent_bytes
            data, what = bender(dice, data)
            with open(os.path.join(here, name), "wb") as file:
                file.write(data)
            commands = [["check", "ckpt", "--data", "--json"], ["info", "ckpt", "--json"]]
            read = name if taken[world, name] else None
        counts[os.path.basename(name).split(".")[-1]] += 1
        for command in commands[:1] if dice.random() < 0.7 else commands:
            bad, text = run(program, command, here)
            if not bad and read and command[0] == "check" and verdict_of(text) == "clean":
                why = refused(here, read)
                bad = f"clean, and the real reader: {why}" if why else ""
            if bad:
                counts["BAD"] += 1
                kept = os.path.join(options.keep, f"{options.seed}-{number}")
                shutil.copytree(here, kept, dirs_exist_ok=True)
                with open(os.path.join(kept, "README"), "w") as file:
                    file.write(f"{bad}\n{world}: {name}: {what}\nshardwright {' '.join(command)}\n")
                print(f"{number}: {bad} | {os.path.basename(world)}: {name}: {what} | {' '.join(command)}", flush=True)
    shutil.rmtree(work, ignore_errors=True)
    print(json.dumps({"mutations": number, **counts}))
    return 1 if counts["BAD"] else 0


if __name__ == "__main__":
    sys.exit(main())
