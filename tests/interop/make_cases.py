#!/usr/bin/env python3
"""Random checkpoints in the fixtures' form, written by torch's own planner and writer.

    make_cases.py --out DIR --count N --seed S [--broken KIND]

A case is DIR/NAME with ckpt/, truth.safetensors, spec.json and case.json. The same arguments give
the same layouts. KIND is a name in broken.KINDS; without it the cases are healthy.
"""

import argparse
import json
import pathlib
import random
import shutil
import sys

import torch
from safetensors.torch import save_file

import layouts
from broken import KINDS
from fake_ranks import write_beside, write_checkpoint


def write_case(directory, layout, seed, options):
    directory.mkdir(parents=True)
    write_checkpoint(directory / "ckpt", layout.world, layout.state_dict_at,
                     unchecked=layout.unchecked, **options)
    if layout.beside:
        write_beside(directory / "ckpt", layout.world, layout.beside)
    describe_case(directory, layout, seed)


def describe_case(directory, layout, seed):
    save_file({entry.fqn: entry.truth.contiguous().clone() for entry in layout.entries},
              directory / "truth.safetensors")
    spec = {entry.fqn: entry.spec() for entry in layout.entries}
    about = {"kind": layout.kind, "world": layout.world, "mesh": layout.mesh,
             "torch": torch.__version__, "seed": seed, **layout.expected}
    (directory / "spec.json").write_text(json.dumps(spec, indent=1))
    (directory / "case.json").write_text(json.dumps(about, indent=1))


def make_cases(out, count, seed, broken=None):
    made, number = [], 0
    while len(made) < count:
        case_seed = f"{seed}/{number}/{broken or 'healthy'}"
        number += 1
        chance = random.Random(case_seed)
        layout = KINDS[broken](chance) if broken else layouts.healthy(chance)
        options = {"thread_count": chance.choice((1, 1, 2)),
                   "single_file_per_rank": chance.random() < 0.85}
        directory = pathlib.Path(out) / f"{layout.kind}_{number - 1:04d}"
        try:
            write_case(directory, layout, case_seed, options)
        except ValueError as problem:
            # torch 2.6 gives an empty shard the offset of a full one and then refuses its own plan.
            if "validate global plan" not in str(problem) or broken:
                raise
            shutil.rmtree(directory)
            continue
        made.append(directory)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--broken", choices=sorted(KINDS))
    arguments = parser.parse_args()
    for directory in make_cases(arguments.out, arguments.count, arguments.seed, arguments.broken):
        print(directory)


if __name__ == "__main__":
    sys.exit(main())
