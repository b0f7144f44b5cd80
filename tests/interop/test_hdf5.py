"""HDF5 that h5py wrote, one file a rank: read, drawn and converted as it was held."""

import random

import h5py
import numpy
import torch

import judge
import program
from checks import expect_equal
from test_fixtures import must_show
from test_generated import SEED

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8,
          torch.int8, torch.int16, torch.bool)


def cut(shape, ranks, chance):
    """A box a rank: rows or columns, uneven now and then; some ranks hold nothing."""
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
            dataset = files[rank].create_dataset(fqn, data=truth[fqn][box].numpy())
            dataset.attrs["offsets"] = numpy.array(offsets, chance.choice(("i4", "i8", "u8")))
            dataset.attrs["global_shape"] = list(truth[fqn].shape)
    for file in files:
        file.close()
    return truth


def run(checks, other, scratch):
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
