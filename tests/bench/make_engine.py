"""The checkpoints that engine.sh repairs: written by torch's own planner and writer, four ranks.

  gated      gate and up of an MLP, rank by rank: rows change places, every tile is recreated
  moved      tiles along the wrong axis: records change, no byte moves

Elements are random numbers (no hole, nothing that compresses), the same at every run.
"""

import argparse
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
import fake_ranks  # noqa: E402

MESH = {"dp": 2, "tp": 2}
TENSOR_PARALLEL = {"tp": 4}  # gate and up of a rank lie in one tile: blocks are torn from tiles
WORLD = 4


def numbers(seed, shape):
    """Random bits would hold NaNs, which a deep look remarks upon."""
    made = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=made, dtype=torch.float32) - 0.5


def gated(tensors, rows, columns):
    spec = {f"model.layers.{i}.mlp.fc1.weight": {
        "shape": [rows, columns], "dtype": "float32", "mesh": TENSOR_PARALLEL,
        "placements": ["Shard(0)"], "role": "glu"} for i in range(tensors)}

    def state_of(rank):
        state = {}
        for i, fqn in enumerate(spec):
            offsets, sizes = fake_ranks.box_of((rows, columns), TENSOR_PARALLEL, ["Shard(0)"],
                                               rank.coordinate(TENSOR_PARALLEL))
            state[fqn] = fake_ranks.Piece(numbers(i * WORLD + rank.number, sizes), offsets,
                                          (rows, columns))
        return state

    return state_of, spec


def moved(tensors, rows, columns):
    """Saved as [rows * 2, columns / 2] where the model has [rows, columns]: S1."""
    experts = 8
    true = (experts, rows // experts, columns)
    saved = (experts, rows // experts * MESH["tp"], columns // MESH["tp"])
    spec = {f"model.layers.{i}.moe.down_proj.weight": {
        "shape": list(true), "dtype": "float32", "mesh": MESH,
        "placements": ["Shard(0)", "Shard(2)"]} for i in range(tensors)}

    def state_of(rank):
        state = {}
        at = rank.coordinate(MESH)
        local = (experts // MESH["dp"], true[1], true[2] // MESH["tp"])
        for i, fqn in enumerate(spec):
            offsets = (at["dp"] * local[0], at["tp"] * local[1], 0)
            state[fqn] = fake_ranks.Piece(numbers(i * WORLD + rank.number, local), offsets, saved)
        return state

    return state_of, spec


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("gated", "moved"))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--gib", type=float, default=4.0, help="bytes of all tensors together")
    parser.add_argument("--tensors", type=int, default=8)
    arguments = parser.parse_args()
    columns = 4096
    rows = int(arguments.gib * 2**30 / arguments.tensors / columns / 4) // 64 * 64
    state_of, spec = globals()[arguments.case](arguments.tensors, rows, columns)
    arguments.out.mkdir(parents=True)
    fake_ranks.write_checkpoint(arguments.out / "ckpt", WORLD, state_of)
    (arguments.out / "spec.json").write_text(json.dumps(spec, indent=1))


if __name__ == "__main__":
    main()
