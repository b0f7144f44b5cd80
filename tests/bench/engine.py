#!/usr/bin/env python3
"""What moves bytes, next to what moves them without looking: cp -r and xxh128sum, in one run. Both
copies are durable when their time ends: on a disk cp alone has not written anything by then.

Prints one JSON line a case: seconds, peak MiB, GB/s of the checkpoint's bytes, and the ratio to the
peer. The peers use as many threads as Shardwright does (--jobs); the best of --runs counts, and the
runs of a case take turns, so that what else happens on the machine meets both.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time


def measured(command, environment):
    started = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, env=environment)
    errors = child.stderr.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return {"seconds": time.monotonic() - started, "user": usage.ru_utime,
            "system": usage.ru_stime, "mib": usage.ru_maxrss / 1024, "exit": child.returncode,
            "errors": errors}


def bytes_in(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def copy_of(pinned, folder, out):
    """What a copy costs that is durable when it is done, as what Shardwright makes is."""
    return [*pinned, "sh", "-c", 'cp -r "$0" "$1" && find "$1" -type f -exec sync {} +',
            str(folder), str(out)]


def transforms(folder, checkpoint):
    """What is done to a checkpoint that is whole: read, made, read back and proved."""
    yield "reshard", ["reshard", checkpoint, "--mesh", "dp=3,tp=2"]
    steps = {"cast": {"step": "cast", "tensors": ["*"], "dtype": "bfloat16"},
             "transpose": {"step": "permute-dims", "tensors": ["*"], "order": [1, 0]}}
    for name, step in steps.items():
        plan = folder / f"{name}.json"
        plan.write_text(json.dumps({"schema": "shardwright/2", "steps": [step]}))
        if name == "cast" or len(tensor_shape(checkpoint)) == 2:
            yield name, ["repair", checkpoint, "--plan", plan]
    yield "to safetensors", ["convert", checkpoint, "--to", "safetensors"]


def tensor_shape(checkpoint):
    certificate = json.loads((checkpoint / "certificate.json").read_text())
    return next(iter(certificate["tensors"].values()))["shape"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--shardwright", required=True)
    parser.add_argument("--cases", type=pathlib.Path, required=True,
                        help="folders made by make_engine.py, written next to")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    pinned = ["taskset", "-c", f"0-{arguments.jobs - 1}"]
    program = [*pinned, arguments.shardwright]
    environment = dict(os.environ)
    out = arguments.cases / "out"

    def best_pair(case, ours, peer):
        best = [None, None]
        for _ in range(arguments.runs):
            for i, command in enumerate((ours, peer)):
                if case["writes"]:
                    shutil.rmtree(out, ignore_errors=True)
                one = measured(command, environment)
                if one["exit"] not in case["codes"]:
                    sys.exit(f"{' '.join(map(str, command))}: exit {one['exit']}\n{one['errors']}")
                if best[i] is None or one["seconds"] < best[i]["seconds"]:
                    best[i] = one
        return best

    for folder in sorted(arguments.cases.iterdir()):
        checkpoint, spec = folder / "ckpt", folder / "spec.json"
        if not checkpoint.is_dir():
            continue
        size = bytes_in(checkpoint)
        hashes = [*pinned, "sh", "-c",
                  f'find "$0" -type f | xargs -P {arguments.jobs} -n 1 xxh128sum', str(checkpoint)]
        cases = [
            ("repair", True, (0,), [*program, "repair", checkpoint, "--spec", spec, "--out", out,
                                    "--yes"], copy_of(pinned, checkpoint, out)),
            ("check --data", False, (0, 1), [*program, "check", checkpoint, "--spec", spec,
                                             "--data"], hashes),
        ]
        for name, writes, codes, ours, peer in cases:
            case = {"writes": writes, "codes": codes}
            report(folder.name, name, size, *best_pair(case, ours, peer), arguments.jobs)
        shutil.rmtree(out, ignore_errors=True)
        mended = arguments.cases / "mended"
        subprocess.run([*program, "repair", checkpoint, "--spec", spec, "--out", mended, "--yes"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        size = bytes_in(mended)
        copy = copy_of(pinned, mended, out)
        for name, words in transforms(arguments.cases, mended):
            case = {"writes": True, "codes": (0,)}
            ours = [*program, *words, "--out", out, "--yes"]
            report(folder.name, name, size, *best_pair(case, ours, copy), arguments.jobs)
        shutil.rmtree(out, ignore_errors=True)
        mended.rename(out)
        case = {"writes": False, "codes": (0,)}
        hashes = [*hashes[:-1], str(out)]
        report(folder.name, "verify", bytes_in(out),
               *best_pair(case, [*program, "verify", out], hashes), arguments.jobs)
        shutil.rmtree(out, ignore_errors=True)


def report(folder, name, size, ours, peer, jobs):
    print(json.dumps({
        "bench": "engine", "case": folder, "verb": name, "jobs": jobs,
        "gigabytes": round(size / 1e9, 2), "seconds": round(ours["seconds"], 2),
        "user": round(ours["user"], 2), "system": round(ours["system"], 2),
        "mib": round(ours["mib"]), "gb_per_s": round(size / 1e9 / ours["seconds"], 2),
        "peer_gb_per_s": round(size / 1e9 / peer["seconds"], 2),
        "ratio": round(peer["seconds"] / ours["seconds"], 2)}), flush=True)


if __name__ == "__main__":
    main()
