#!/usr/bin/env python3
"""Opens the same giant metadata with Shardwright and with torch, in one run, and prints the ratios.

torch's time is that of FileSystemReader.read_metadata alone: importing torch is not counted
against it. Memory is the peak resident set of each process.
"""

import argparse
import json
import os
import subprocess
import sys
import time

READ_BY_TORCH = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from torch.distributed.checkpoint import FileSystemReader
import torch
started = time.monotonic()
metadata = FileSystemReader(sys.argv[1]).read_metadata()
seconds = time.monotonic() - started
print(json.dumps({"seconds": seconds, "version": torch.__version__,
                  "chunks": len(metadata.storage_data)}), flush=True)
import os
os._exit(0)
"""


def measured(command):
    """Wall seconds, peak MiB and output of a child that is waited for alone."""
    started = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    return {"seconds": round(seconds, 3), "mib": round(usage.ru_maxrss / 1024, 1),
            "exit": child.returncode}, output


def best_of(runs, command):
    return min((measured(command) for _ in range(runs)), key=lambda one: one[0]["seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--shardwright", required=True)
    parser.add_argument("--torch-python", help="without it, only Shardwright is measured")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()

    info, told = best_of(arguments.runs, [arguments.shardwright, "info", arguments.checkpoint,
                                          "--json"])
    check, verdict = best_of(arguments.runs, [arguments.shardwright, "check", arguments.checkpoint,
                                              "--json", "--depth", "metadata"])
    result = {"bench": "metadata", "info": info, "check": check}
    result["chunks"] = json.loads(told).get("chunks") if info["exit"] == 0 else None
    if verdict:
        result["verdict"] = json.loads(verdict).get("verdict")
    if arguments.torch_python:
        torch, told = measured([arguments.torch_python, "-c", READ_BY_TORCH, arguments.checkpoint])
        read = json.loads(told)
        torch["seconds"] = round(read["seconds"], 3)
        result.update(torch=torch, torch_version=read["version"])
        result["times_faster"] = round(torch["seconds"] / info["seconds"], 1)
        result["times_less_memory"] = round(torch["mib"] / info["mib"], 1)
        result["chunks_agree"] = read["chunks"] == result["chunks"]
    print(json.dumps(result))
    return 0 if info["exit"] == 0 and check["exit"] in (0, 1) else 1


if __name__ == "__main__":
    sys.exit(main())
