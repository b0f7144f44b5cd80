#!/usr/bin/env python3
"""What file systems that share blocks save: rewrites of a checkpoint on btrfs and XFS, and on ext4
which shares nothing. A JSON line each: seconds, processor seconds, and the megabytes of the disk
that are new afterwards. With --next to another build of the program, in turns, so that what else
happens on the machine meets both.

Needs root (images are mounted), mkfs.btrfs, mkfs.xfs, and torch 2.15 for the checkpoints, which
tests/interop/run.sh installs. One image at a time takes up to four times the checkpoint of the disk.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

TORCH = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"),
                     "shardwright/interop/torch-2.15/bin/python")
# Weights of whole blocks, and between them norms and biases that are none.
MAKE = """
import sys, torch, torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
folder, layers = sys.argv[1], int(sys.argv[2])
chance = torch.Generator().manual_seed(1)
state = {}
for i in range(layers):
    for name in ("attn", "mlp"):
        state[f"model.layers.{i}.{name}.weight"] = torch.randn(
            4096, 4096, generator=chance).to(torch.bfloat16)
    state[f"model.layers.{i}.norm.weight"] = torch.randn(4096, generator=chance).to(torch.bfloat16)
    state[f"model.layers.{i}.bias"] = torch.randn(1000, generator=chance)
dcp.save(state, checkpoint_id=folder + "/dcp", no_dist=True)
import os
os.mkdir(folder + "/hf")
save_file(state, folder + "/hf/model.safetensors", metadata={"format": "pt"})
"""
STEPS = {"schema": "shardwright/2", "steps": [
    {"step": "drop", "tensors": ["model.layers.3.*"]},
    {"step": "rename", "from": "model\\.(.*)", "to": "backbone.$1", "regex": True}]}


@contextlib.contextmanager
def file_system(kind, work, size):
    image, folder = work / f"{kind}.img", work / kind
    folder.mkdir()
    with open(image, "wb") as stream:
        stream.truncate(size)
    force = ["-F"] if kind == "ext4" else []
    subprocess.run([f"mkfs.{kind}", "-q", *force, image], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
        image.unlink()


def used_bytes(folder):
    """Once it stays the same: XFS and btrfs free what was removed a while after it."""
    seen = []
    while len(seen) < 3 or len(set(seen[-3:])) > 1:
        os.sync()
        status = os.statvfs(folder)
        seen.append((status.f_blocks - status.f_bfree) * status.f_frsize)
        time.sleep(0.2)
    return seen[-1]


def measured(command, out):
    shutil.rmtree(out, ignore_errors=True)
    before, started = used_bytes(out.parent), time.monotonic()
    child = subprocess.Popen([*map(str, command), "--out", str(out), "--yes", "--json"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - started
    if child.returncode != 0:
        raise SystemExit(f"{command}: exit {child.returncode}\n{errors}")
    return {"seconds": round(seconds, 2), "user": round(usage.ru_utime, 2),
            "system": round(usage.ru_stime, 2),
            "new_mb": round((used_bytes(out.parent) - before) / 1e6, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--shardwright", required=True)
    parser.add_argument("--beside", help="another build, in turns with it")
    parser.add_argument("--layers", type=int, default=20, help="of 67 MB each")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--in", dest="folder", default="/var/tmp")
    parser.add_argument("--kinds", nargs="+", default=["btrfs", "xfs", "ext4"])
    arguments = parser.parse_args()
    programs = {"new": arguments.shardwright}
    if arguments.beside:
        programs["beside"] = arguments.beside
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="shardwright-shared-") as name:
        work = pathlib.Path(name)
        plan = work / "plan.json"
        plan.write_text(json.dumps(STEPS))
        for kind in arguments.kinds:
            with file_system(kind, work, arguments.layers * 67_000_000 * 5 + (2 << 30)) as folder:
                subprocess.run([TORCH, "-W", "ignore", "-c", MAKE, folder, str(arguments.layers)],
                               check=True)
                cases = {"dcp: drop, rename": ["repair", folder / "dcp", "--plan", plan],
                         "safetensors: drop, rename": ["repair", folder / "hf", "--plan", plan],
                         "safetensors to dcp": ["convert", folder / "hf", "--to", "dcp"],
                         "dcp: reshard": ["reshard", folder / "dcp", "--mesh", "dp=2"]}
                for case, command in cases.items():
                    for run in range(arguments.runs):
                        turns = list(programs.items())
                        for which, program in turns if run % 2 == 0 else reversed(turns):
                            line = measured([program, *command], folder / "out")
                            print(json.dumps({"case": case, "on": kind, "program": which} | line),
                                  flush=True)
                    shutil.rmtree(folder / "out", ignore_errors=True)


if __name__ == "__main__":
    main()
