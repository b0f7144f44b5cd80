"""Conversion next to torch's and safetensors' own, in one run, a JSON line each. Run by engine.sh.

  torch         shardwright convert --to torch         next to dcp_to_torch_save (imports not counted)
  safetensors   shardwright convert --to safetensors   next to save_file of tensors already in memory

Shardwright's times hold the start of the program, a check of the source, the read-back and the
proof. The runs take turns; the best of --runs counts. What was written is loaded and compared once.

Both forms are one file here, and Linux holds a file's lock over each write: `one_file_seconds` is
what as many threads as there are cores take to write that many bytes into one new file from memory,
with nothing read, hashed or read back. `at_most` is how many times as fast as the peer that is.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save


def seconds(work):
    started = time.monotonic()
    work()
    return time.monotonic() - started


def tensors_of(checkpoint):
    """All of it, in memory: what save_file is given."""
    reader = dcp.FileSystemReader(checkpoint)
    metadata = reader.read_metadata().state_dict_metadata
    state = {fqn: torch.empty(entry.size, dtype=entry.properties.dtype)
             for fqn, entry in metadata.items() if hasattr(entry, "size")}
    dcp.load(state, storage_reader=reader, no_dist=True)
    return state


def write_one_file(path, size, piece=8 << 20):
    """Nothing but that: the least that any conversion into one file takes."""
    buffer = bytes(range(256)) * (piece // 256)
    threads = len(os.sched_getaffinity(0))
    with open(path, "wb") as file, concurrent.futures.ThreadPoolExecutor(threads) as pool:
        offsets = range(0, size, piece)
        for _ in pool.map(lambda at: os.pwrite(file.fileno(), buffer[:size - at], at), offsets):
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--shardwright", required=True)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder to write in")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    ours, theirs = arguments.work / "ours", arguments.work / "theirs"
    state = tensors_of(arguments.checkpoint)
    size = sum(tensor.nbytes for tensor in state.values())

    def convert(form):
        subprocess.run([arguments.shardwright, "convert", arguments.checkpoint, "--to", form,
                        "--out", ours, "--yes"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def loaded(form):
        if form == "torch":
            return torch.load(ours / "model.pt", weights_only=True, mmap=True)
        return {fqn: tensor for path in ours.glob("*.safetensors")
                for fqn, tensor in load_file(path).items()}

    peers = {"torch": lambda: dcp_to_torch_save(arguments.checkpoint, theirs / "model.pt"),
             "safetensors": lambda: save_file(state, theirs / "model.safetensors")}
    for form, peer in peers.items():
        best = [float("inf")] * 3
        for run in range(arguments.runs):
            for folder in (ours, theirs):
                shutil.rmtree(folder, ignore_errors=True)
            theirs.mkdir()
            best[0] = min(best[0], seconds(lambda form=form: convert(form)))
            best[1] = min(best[1], seconds(peer))
            shutil.rmtree(theirs)
            theirs.mkdir()
            best[2] = min(best[2], seconds(lambda: write_one_file(theirs / "bytes", size)))
            if run == 0:
                result = loaded(form)
                different = [fqn for fqn in state if not torch.equal(result[fqn], state[fqn])]
                if different or len(result) != len(state):
                    sys.exit(f"{form}: not what was converted: {different}")
                del result
        for folder in (ours, theirs):
            shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps({"bench": "convert", "to": form, "gigabytes": round(size / 1e9, 2),
                          "seconds": round(best[0], 2), "peer_seconds": round(best[1], 2),
                          "times_as_fast": round(best[1] / best[0], 2),
                          "one_file_seconds": round(best[2], 2),
                          "at_most": round(best[1] / best[2], 2)}), flush=True)


if __name__ == "__main__":
    main()
