#!/usr/bin/env python3
"""Holds two builds of Shardwright against each other: the same answers, the same results to the byte.

usage: same_answers.py OLD NEW [--data DIR]... [--only WORD] [--rename OLD_KEY=NEW_KEY]...

For a change that must not change behaviour. Every verb runs over every checkpoint below the DIRs
(default: tests/data), with its spec and its truth where they are next to it. Exit codes and JSON are
compared key by key, text line by line, folders that repair, reshard and convert write file by file.
What names the build, the time or the place is left out of the comparison (UNSTEADY).

Prints a line for each difference. Exit: 0 the same, 1 different, 3 usage."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

UNSTEADY = {"seconds", "tool", "made", "at", "elapsed", "bytes_per_second", "when", "host", "pid",
            "thread_seconds", "predicted", "longest"}
NUMBERS_OF_A_RUN = re.compile(r"\d+(\.\d+)? ?(s|ms|MB/s|GB/s)\b")

# Each row: the verb, then its words. {spec}, {truth}: the row is left out where there is none.
LOOKS = [
    ["info", "--json"],
    ["info"],
    ["ls", "--json"],
    ["check", "--json"],
    ["check", "--json", "--data"],
    ["check", "--json", "--depth", "metadata"],
    ["check", "--json", "--spec", "{spec}"],
    ["check", "--json", "--data", "--against", "{truth}"],
    ["check"],
    ["plan", "--json"],
    ["plan", "--json", "--spec", "{spec}"],
    ["plan", "--spec", "{spec}"],
    ["stats", "--json"],
    ["hash", "--json"],
    ["map"],
    ["report", "--format", "markdown"],
    ["report", "--format", "sarif"],
    ["report", "--format", "junit"],
]
COMPARISONS = [["diff", "{ckpt}", "{truth}", "--json"], ["diff", "{ckpt}", "{truth}", "--json", "--data"]]
WRITES = [
    ["repair", "--json", "--yes"],
    ["repair", "--json", "--yes", "--spec", "{spec}"],
    ["reshard", "--json", "--yes", "--mesh", "dp=2,tp=2"],
    ["convert", "--json", "--yes", "--to", "safetensors"],
    ["convert", "--json", "--yes", "--to", "dcp"],
    ["convert", "--json", "--yes", "--to", "torch"],
]


def checkpoints(roots):
    """Folders named ckpt, and whole files and folders of the formats that have none."""
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_dir() and path.name == "ckpt":
                yield path
            elif path.is_file() and path.suffix in (".safetensors", ".pt", ".h5", ".keras", ".bin"):
                if "ckpt" not in path.parts:
                    yield path


def words_of(row, case):
    values = {"{ckpt}": case, "{spec}": case.parent / "spec.json", "{truth}": case.parent / "truth.safetensors"}
    words = []
    for word in row:
        if word in values:
            if not values[word].exists():
                return None
            word = str(values[word])
        words.append(word)
    return words


def run(program, words, home):
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run([program, *words], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, env=environment, timeout=900)
    return done.returncode, done.stdout


def steady(value, places, renamed):
    if isinstance(value, dict):
        return {renamed.get(key, key): steady(item, places, renamed)
                for key, item in value.items() if key not in UNSTEADY}
    if isinstance(value, list):
        return [steady(item, places, renamed) for item in value]
    if isinstance(value, str):
        return steady_text(value, places)
    return value


def steady_text(text, places):
    for place in places:
        text = text.replace(place, "(result)")
    return NUMBERS_OF_A_RUN.sub("(time)", text)


def answer(program, words, places, home, renamed):
    code, out = run(program, words, home)
    try:
        return {"exit": code, "answer": steady(json.loads(out), places, renamed)}
    except ValueError:
        return {"exit": code, "text": steady_text(out, places).splitlines()}


def folder(path, renamed):
    """Each file by its hash; a certificate and a plan by what they say, less what is unsteady."""
    files = {}
    for file in sorted(path.rglob("*")):
        if not file.is_file():
            continue
        name = str(file.relative_to(path))
        data = file.read_bytes()
        if file.suffix == ".json":
            try:
                files[name] = steady(json.loads(data), [str(path)], renamed)
                continue
            except ValueError:
                pass
        files[name] = hashlib.sha256(data).hexdigest()
    return files


def differences(old, new, at=""):
    if type(old) is not type(new):
        return [f"{at}: {str(old)[:80]!r} -> {str(new)[:80]!r}"]
    if isinstance(old, dict):
        out = []
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in old or key not in new:
                out.append(f"{at}.{key}: {'new' if key not in old else 'gone'}")
            else:
                out += differences(old[key], new[key], f"{at}.{key}")
        return out
    if isinstance(old, list):
        if len(old) != len(new):
            return [f"{at}: {len(old)} -> {len(new)} of them"]
        return [line for i, (a, b) in enumerate(zip(old, new)) for line in differences(a, b, f"{at}[{i}]")]
    return [] if old == new else [f"{at}: {str(old)[:80]!r} -> {str(new)[:80]!r}"]


def compare_case(case, programs, renamed):
    said = []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        rows = [[row[0], str(case), *row[1:]] for row in LOOKS] + COMPARISONS + \
               [[row[0], str(case), *row[1:]] for row in WRITES]
        for row in rows:
            words = words_of(row, case)
            if words is None:
                continue
            sides = []
            for number, program in enumerate(programs):
                # Results of both builds get one name, since plans and certificates repeat it.
                out, home = scratch / "out", scratch / f"home{number}"
                shutil.rmtree(out, ignore_errors=True)
                home.mkdir(exist_ok=True)
                writes = words[0] in {w[0] for w in WRITES}
                full = [*words, "--out", str(out)] if writes else words
                side = answer(program, full, [str(out)], home, renamed)
                if writes and out.exists():
                    side["folder"] = folder(out, renamed)
                sides.append(side)
            for line in differences(*sides):
                said.append(f"{' '.join(words)}: {line}")
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--data", action="append", type=pathlib.Path)
    parser.add_argument("--only", default="", help="checkpoints whose path has this word")
    parser.add_argument("--rename", action="append", default=[], help="OLD_KEY=NEW_KEY: a key of JSON that changed its name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    roots = options.data or [pathlib.Path(__file__).resolve().parent.parent / "data"]
    renamed = dict(pair.split("=", 1) for pair in options.rename)
    programs = [os.path.abspath(options.old), os.path.abspath(options.new)]
    cases = [case for case in checkpoints(roots) if options.only in str(case)]
    if not cases:
        print("same_answers: no checkpoint to ask about", file=sys.stderr)
        return 3
    different = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for said in pool.map(lambda case: compare_case(case, programs, renamed), cases):
            different += bool(said)
            for line in said[:20]:
                print(line, flush=True)
            if len(said) > 20:
                print(f"... and {len(said) - 20} more", flush=True)
    print(f"{len(cases) - different} of {len(cases)} checkpoints answer the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
