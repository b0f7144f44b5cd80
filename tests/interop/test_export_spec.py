"""assets/export_spec.py next to live models, in both torches, and the program that reads it."""

import json
import subprocess
import sys

import export_spec
import fake_ranks
import judge
import program
import small_models
from checks import expect, expect_equal

BLOCK = "model.up.weight", "model.down.weight", "model.norm.weight", "model.positions"
LAYOUTS = {
    "plain": [({}, [])] * 4,
    "fsdp": [({"dp": 8}, ["Shard(0)"])] * 3 + [({}, [])],
    "tp": [({"tp": 8}, ["Shard(0)"]), ({"tp": 8}, ["Shard(1)"]), ({}, []), ({}, [])],
    "fsdp_tp": [({"dp": 4, "tp": 2}, ["StridedShard(0,sf=2)", "Shard(0)"]),
                ({"dp": 4, "tp": 2}, ["Shard(0)", "Shard(1)"]), ({"dp": 4}, ["Shard(0)"]),
                ({}, [])],
    "hsdp": [({"replicate": 2, "shard": 4}, ["Replicate", "Shard(0)"])] * 3 + [({}, [])],
}
ROLES = {"plain": [None, None, "norm", None], "fsdp": [None, None, "norm", None],
         "tp": ["column", "row", "norm", None], "fsdp_tp": ["column", "row", "norm", None],
         "hsdp": [None, None, "norm", None]}


def must_be_right(name, spec):
    shapes = {"model.up.weight": [10, 7], "model.down.weight": [7, 10],
              "model.norm.weight": [7], "model.positions": [7]} if name == "fsdp" else {
                  "model.up.weight": [16, 8], "model.down.weight": [8, 16],
                  "model.norm.weight": [8], "model.positions": [8]}
    for fqn, (mesh, placements), role in zip(BLOCK, LAYOUTS[name], ROLES[name]):
        entry = spec[fqn]
        expect_equal((entry["shape"], list(entry["mesh"].items()), entry["placements"]),
                     (shapes[fqn], list(mesh.items()), placements), f"{name}: {fqn}")
        expect_equal(entry.get("role"), role, f"{name}: role of {fqn}")
        if fqn != "model.positions":
            state = spec[fqn.replace("model.", "optimizer.state.") + ".exp_avg"]
            expect_equal(state, entry, f"{name}: exp_avg of {fqn}")
    expect_equal(spec["model.positions"]["dtype"], "int64", "dtype of a buffer")
    expect_equal(spec["optimizer.state.up.bias.step"]["shape"], [], "shape of a step")


def saved_by_torch(name, directory):
    optimizers = []

    def state_dict_at(rank):
        model = small_models.MODELS[name](rank)
        small_models.set_values(model, rank.number)
        optimizers.append(small_models.stepped_optimizer(model))
        return small_models.state_dict_of(model, optimizers[-1])
    fake_ranks.write_checkpoint(directory, small_models.WORLD, state_dict_at)


def run(checks, other, scratch):
    with checks.that("a spec exported by torch 2.15 says how every tensor is laid out"):
        specs = small_models.export_all(scratch)
        for name, spec in specs.items():
            must_be_right(name, spec)
    with checks.that("the file holds what the call returned"):
        for name, spec in specs.items():
            expect_equal(json.loads((scratch / f"{name}.json").read_text()), spec, name)
    with checks.that("torch 2.6 exports the same specs"):
        (scratch / "other").mkdir()
        older = other.ask("specs_of_models", directory=str(scratch / "other"))
        for name, spec in specs.items():
            expect_equal(older[name], spec, name)
    with checks.that("only rank 0 writes the file, and every rank gets the same spec"):
        path = scratch / "rank_5.json"
        expect_equal(small_models.export("fsdp_tp", path, rank=5), specs["fsdp_tp"], "spec")
        expect(not path.exists(), "rank 5 has written")
    with checks.that("an optimizer before its first step is refused, and not stepped"):
        model = small_models.plain(0)
        optimizer = judge.torch.optim.AdamW(model.parameters())
        try:
            export_spec.export_spec(model, scratch / "refused.json", optimizer=optimizer)
        except ValueError as problem:
            expect("first step" in str(problem), str(problem))
        else:
            expect(False, "it was taken")
        expect(not optimizer.state, "the optimizer has states now")
    with checks.that("python export_spec.py tells how to use it"):
        told = subprocess.run([sys.executable, export_spec.__file__], capture_output=True,
                              text=True, timeout=60)
        expect(told.returncode == 0 and "export_spec(model" in told.stdout, told)
    for name in small_models.MODELS:
        directory = scratch / f"{name}_checkpoint"
        with checks.that(f"a {name} model's state dict is exported under torch's own names"):
            saved_by_torch(name, directory)
            from torch.distributed.checkpoint import FileSystemReader
            entries = FileSystemReader(str(directory)).read_metadata().state_dict_metadata
            saved = {fqn for fqn, entry in entries.items() if hasattr(entry, "size")}
            expect_equal(saved, set(specs[name]), "names")
        with checks.that(f"a {name} model's checkpoint is clean against its exported spec"):
            program.must_be_clean(directory, "--spec", scratch / f"{name}.json", "--data")
