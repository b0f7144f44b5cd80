"""HDF5 that h5py wrote, one file per rank: read and converted as it was held; tables of reports."""

import random

import h5py
import numpy
import torch

import judge
import program
from checks import LeftOut, expect_equal
from test_export_hdf5 import can_write
from test_fixtures import cases, must_show
from test_generated import SEED

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8,
          torch.int8, torch.int16, torch.bool)


def cut(shape, ranks, chance):
    """One box per rank: rows or columns, uneven now and then; some ranks hold nothing."""
    dim = chance.randrange(len(shape))
    cuts = sorted(chance.randint(0, shape[dim]) for _ in range(ranks - 1))
    for rank, (low, high) in enumerate(zip([0, *cuts], [*cuts, shape[dim]])):
        offsets, sizes = [0] * len(shape), list(shape)
        offsets[dim], sizes[dim] = low, high - low
        if high > low:
            yield rank, offsets, sizes


def some_tensor(chance):
    shape = [chance.randint(1, 6) for _ in range(chance.randint(1, 3))]
    dtype = chance.choice(DTYPES)
    numbers = [chance.randint(0, 1 if dtype is torch.bool else 100)
               for _ in range(torch.Size(shape).numel())]
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def some_tiles(sizes, libver, chance):
    """How h5py is to cut it up; the newer files have another index of tiles, which is not read."""
    if libver != "earliest" or chance.random() < 0.5:
        return {}
    return dict(chunks=tuple(chance.randint(1, size) for size in sizes),
                **chance.choice(({}, dict(compression="gzip"),
                                 dict(compression="gzip", shuffle=True))))


def made(folder, chance):
    ranks, truth = chance.randint(1, 5), {}
    folder.mkdir(parents=True)
    libver = chance.choice(("earliest", "latest", "v108"))
    files = [h5py.File(folder / f"shard_rank{rank}.h5", "w", libver=libver)
             for rank in range(ranks)]
    for number in range(chance.randint(1, 8)):
        fqn = f"model/block{number % 3}/w{number}.weight"
        truth[fqn] = some_tensor(chance)
        for rank, offsets, sizes in cut(truth[fqn].shape, ranks, chance):
            box = tuple(slice(o, o + s) for o, s in zip(offsets, sizes))
            dataset = files[rank].create_dataset(fqn, data=truth[fqn][box].numpy(),
                                                 **some_tiles(sizes, libver, chance))
            dataset.attrs["offsets"] = numpy.array(offsets, chance.choice(("i4", "i8", "u8")))
            dataset.attrs["global_shape"] = list(truth[fqn].shape)
    for file in files:
        file.close()
    return truth


def tables(checks, case, out):
    """What the report says of a fixture, compared with its other answers."""
    with checks.that(f"{case.name}: the tables of the report say what the other verbs say"):
        program.shardwright("report", case.checkpoint, "--data", "--format", "hdf5", "--out", out,
                            "--json", "--fail-on", "never").must_exit(0)
        told = program.shardwright("stats", case.checkpoint, "--json").must_exit(0).json["tensors"]
        info = program.shardwright("info", case.checkpoint, "--json").must_exit(0).json
        with h5py.File(out, "r") as file:
            tensors, chunks, statistics = (file[name][:] for name in
                                           ("tensors", "chunks", "statistics"))
            expect_equal((len(tensors), len(chunks)), (info["tensors"], info["chunks"]), "rows")
            units = dict(zip(file["tensors"].dtype.names, file["tensors"].attrs["units"]))
            expect_equal((units["bytes"], units["elements"]), ("B", ""), "units")
            expect_equal(int(tensors["bytes"].sum()), info["bytes"], "bytes")
            expect_equal(file.attrs["verdict"], "clean", "verdict")
            for row in statistics:
                wanted = told[row["fqn"].decode()]
                expect_equal((int(row["elements"]), int(row["nan"])),
                             (wanted["elements"], wanted["nan"] or 0), row["fqn"])
                expect_equal((int(row["missing"]), int(row["unread"]), int(row["repeated"]),
                              row["error"]), (0, 0, 0, b""), f"what is wrong with {row['fqn']}")
                expect_equal(None if numpy.isnan(row["mean"]) else float(row["mean"]),
                             wanted["mean"], f"mean of {row['fqn']}")
            named = [tensors["fqn"][chunk["tensor"]] for chunk in chunks]
            expect_equal(named, sorted(named, key=list(tensors["fqn"]).index), "order")
            expect_equal(sum(int(row["count"]) for row in file["histogram"][:]),
                         sum(bucket["count"] for one in told.values()
                             for bucket in one["histogram"] or ()), "histogram")


def run(checks, other, scratch):
    can = can_write()
    if not can:
        with checks.that("the tables of the report say what the other verbs say"):
            raise LeftOut("the program was built without HDF5")
    for number, case in enumerate(cases("healthy_") if can else []):
        tables(checks, case, scratch / f"tables_{number}.h5")
    for number in range(12):
        chance = random.Random(f"{SEED}/hdf5/{number}")
        folder = scratch / f"ranks_{number}"
        truth = made(folder, chance)
        with checks.that(f"HDF5 of ranks {number}: every tensor reads as it was held"):
            program.must_be_clean(folder, "--data")
            must_show(folder, truth)
        with checks.that(f"HDF5 of ranks {number}: converted to safetensors it is the same"):
            out = scratch / f"converted_{number}"
            program.shardwright("convert", folder, "--to", "safetensors", "--out", out,
                                "--json", "--yes").must_exit(0)
            got = {fqn: tensor for path in sorted(out.glob("*.safetensors"))
                   for fqn, tensor in judge.load_file(path).items()}
            expect_equal(judge.differences(got, truth), [], "differences")
