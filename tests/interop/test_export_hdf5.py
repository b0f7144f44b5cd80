"""h5py reads a checkpoint through what export-hdf5 wrote, bit for bit what training held.

Every healthy fixture and random layouts of torch's own planner; whole tensors, slices, values as
h5py converts them. Damage never looks whole, and the checkpoint is as it was.
"""

import os
import pathlib
import random
import subprocess
import sys

import h5py
import numpy
import torch
import torch.distributed.checkpoint as dcp

import judge
import program
from checks import LeftOut, expect, expect_equal
from test_fixtures import cases
from test_generated import SEED, generated

# What h5py shows as numbers, and not as bytes that the attribute names.
NUMBERS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2,
           torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
           torch.complex64, torch.complex128)


def raw(dataset):
    """Its bytes as HDF5 hands them out without converting them."""
    bits = numpy.empty((*dataset.shape, dataset.id.get_type().get_size()), "u1")
    if bits.size:
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, bits, dataset.id.get_type())
    return bits.tobytes()


def same_numbers(got, wanted):
    wide = wanted.to(torch.complex128 if wanted.is_complex() else torch.float64)
    return numpy.array_equal(numpy.asarray(got, wide.numpy().dtype), wide.numpy(), equal_nan=True)


def must_slice(dataset, tensor, chance):
    """A slice of every dimension, with steps: only a part of the tiles is touched."""
    index = tuple(slice(chance.randrange(extent), None, chance.choice((1, 2, 3)))
                  for extent in tensor.shape)
    expect(same_numbers(dataset[index], tensor[index]), f"{dataset.name}{index}")


def must_equal(file, fqn, tensor, chance):
    expect(fqn in file["tensors"], f"{fqn} is not there")
    dataset = file["tensors"][fqn]
    expect_equal(tuple(dataset.shape), tuple(tensor.shape), f"shape of {fqn}")
    expect_equal(dataset.attrs["dtype"], str(tensor.dtype).removeprefix("torch."), "dtype")
    expect(raw(dataset) == judge.bytes_of(tensor).numpy().tobytes(), f"bytes of {fqn}")
    if tensor.dtype in NUMBERS and tensor.numel():
        expect(same_numbers(dataset[()], tensor), f"numbers of {fqn} as {dataset.dtype}")
        if tensor.dim():
            must_slice(dataset, tensor, chance)


def export(checkpoint, out, *options, codes=(0,)):
    return program.shardwright("export-hdf5", "--json", checkpoint, "--out", out,
                               *options).must_exit(*codes).json


def healthy(checks, case, out):
    chance = random.Random(f"{SEED}/{case.name}")
    before = judge.tree_hash(case.checkpoint)
    with checks.that(f"{case.name}: h5py reads every tensor through the export"):
        answer = export(case.checkpoint, out, "--copy")
        expect_equal(answer["left_out"], [], "left out")
        with h5py.File(out, "r") as file:
            for fqn, tensor in case.truth().items():
                must_equal(file, fqn, tensor, chance)
    out.unlink()
    with checks.that(f"{case.name}: what is left out without copies is said"):
        answer = export(case.checkpoint, out)
        with h5py.File(out, "r") as file:
            for fqn, tensor in case.truth().items():
                if fqn not in answer["left_out"]:
                    must_equal(file, fqn, tensor, chance)
            expect_equal(list(file["left_out/fqn"].asstr()), answer["left_out"], "/left_out")
            for path, size in zip(file["files/path"].asstr(), file["files/size"]):
                expect_equal(os.path.getsize(path), size, f"size of {path}")
    with checks.that(f"{case.name}: the export changed nothing"):
        expect_equal(judge.tree_hash(case.checkpoint), before, "hashes")


def cut_short(checkpoint, chance):
    path = chance.choice(sorted(path for path in checkpoint.iterdir()
                                if path.suffix in (".distcp", ".safetensors") and path.stat().st_size))
    with path.open("r+b") as stream:
        stream.truncate(chance.randrange(path.stat().st_size))
    return path.name


def damaged(checks, case, out):
    """Whatever is not left out equals the truth; whatever is shown in part is right or loud."""
    chance = random.Random(f"{SEED}/{case.name}/damaged")
    with checks.that(f"{case.name}, cut short: nothing that is lost looks whole"):
        name = cut_short(case.checkpoint, chance)
        answer = program.shardwright("export-hdf5", "--json", case.checkpoint, "--out", out)
        answer.must_exit(0, 2)
        if "error" in answer.json:  # of one that says in its data files what it holds
            expect(name.endswith(".safetensors"), f"refused: {answer.json['error']}")
            return
        with h5py.File(out, "r") as file:
            for fqn, tensor in case.truth().items():
                if fqn not in answer.json["left_out"]:
                    must_equal(file, fqn, tensor, chance)
                    continue
                expect(fqn not in file["tensors"], f"{fqn} is left out and there")
                if fqn in answer.json["partial"] and tensor.dtype.is_floating_point:
                    got = torch.from_numpy(numpy.asarray(file["partial"][fqn][()], "f8"))
                    loud = got.isnan()
                    expect_equal(int(loud.sum()), int(file["partial"][fqn].attrs["missing_elements"]) +
                                 int((tensor.double().isnan() & ~loud).sum()), f"missing of {fqn}")
                    expect(bool((loud | (got == tensor.double())).all()), f"{fqn} in part")


def relative(checks, case, folder):
    with checks.that(f"{case.name}: relative paths hold when both are moved"):
        program.shardwright("export-hdf5", "--json", case.checkpoint, "--paths", "relative",
                            "--out", folder / "before.h5").must_exit(0)
        moved = folder / "moved"
        moved.mkdir()
        case.checkpoint.rename(moved / case.checkpoint.name)
        (folder / "before.h5").rename(moved / "after.h5")
        case.checkpoint = moved / case.checkpoint.name
        fqn, tensor = next((fqn, t) for fqn, t in case.truth().items() if t.dim() > 1)
        script = (f"import h5py\nd = h5py.File({str(moved / 'after.h5')!r}, 'r')['tensors'][{fqn!r}]\n"
                  "print(float(abs(d[()].astype('f8')).sum()))")
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              env=dict(os.environ, HDF5_EXTFILE_PREFIX="${ORIGIN}"), timeout=60)
        expect(told.returncode == 0, told.stderr[-500:])
        expect_equal(float(told.stdout), float(tensor.double().abs().sum()), "sum")


def stacked(checks, scratch):
    """Layers alike, cut by columns: their tiles are parts of one dataset, and each reads as itself."""
    generator = torch.Generator().manual_seed(11)
    tensors = {f"layers.{layer}.{name}": torch.randn(shape, generator=generator).to(dtype)
               for layer in range(70)
               for name, shape, dtype in (("up", (8, 12), torch.float32),
                                          ("down", (6, 20), torch.bfloat16),
                                          ("gate", (3, 2, 8), torch.float64))}
    dcp.save(tensors, checkpoint_id=str(scratch / "layers"))
    places = scratch / "columns.json"
    places.write_text('{"*.gate": ["Shard(2)"], "*": ["Shard(1)"]}')
    cut = scratch / "columns"
    program.shardwright("reshard", "--json", scratch / "layers", "--mesh", "tp=4", "--placements",
                        places, "--out", cut, "--yes").must_exit(0)
    with checks.that("tensors that are equal are parts of one dataset and equal the truth"):
        chance = random.Random(SEED)
        answer = export(cut, scratch / "stacked.h5")
        expect_equal(answer["left_out"], [], "left out")
        with h5py.File(scratch / "stacked.h5", "r") as file:
            stacks = [name for name in file["sources"] if name.startswith("stack.")]
            expect(stacks, "there is no stack")
            in_stacks = sum(len(file["sources"][name]) for name in stacks)
            expect(in_stacks > len(tensors) // 2, f"{in_stacks} of {len(tensors)} are in stacks")
            for fqn, tensor in tensors.items():
                must_equal(file, fqn, tensor, chance)
    with checks.that("where one of their files is gone, no part of a stack looks whole"):
        sorted(cut.glob("*.distcp"))[1].unlink()
        answer = export(cut, scratch / "gone.h5", codes=(2,))
        expect_equal(sorted(answer["left_out"]), sorted(tensors), "left out")
        with h5py.File(scratch / "gone.h5", "r") as file:
            expect_equal(len(file["tensors"]), 0, "whole tensors")
            for fqn, tensor in tensors.items():
                got = numpy.asarray(file["partial"][fqn][()], "f8")
                loud = numpy.isnan(got)
                expect_equal(int(loud.sum()), tensor.numel() // 4, f"missing of {fqn}")
                expect(bool((loud | (got == tensor.double().numpy())).all()), fqn)


def can_write():
    """The only other answer is that the file is there already."""
    told = program.shardwright("export-hdf5", "--json", cases("healthy_")[0].checkpoint, "--out",
                               os.devnull).must_exit(2, 3)
    missing = "built without HDF5" in told.stdout
    expect(missing or "never replaced" in told.stdout, told.stdout)
    return not missing


def run(checks, other, scratch):
    if not can_write():
        with checks.that("h5py reads checkpoints through exports"):
            raise LeftOut("the program was built without HDF5")
        return
    for number, case in enumerate(cases("healthy_")):
        healthy(checks, case, scratch / f"fixture_{number}.h5")
    made = generated(scratch, 24)
    for number, case in enumerate(made):
        healthy(checks, case, scratch / f"generated_{number}.h5")
    stacked(checks, scratch)
    relative(checks, made[0], pathlib.Path(made[0].directory))
    for number, case in enumerate(made[1:]):
        damaged(checks, case, scratch / f"damaged_{number}.h5")
