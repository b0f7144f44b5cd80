"""`hash` is what its definition says of the elements that torch loads.

The sum of core/tensor/fingerprint.h, written down again: two sums over 32-bit words, each weighted
by its place in the tensor, modulo 2^61 - 1.
"""

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch.distributed.checkpoint._extension import ZStandard

import program
from checks import expect, expect_equal
from test_statistics import tensors

PRIME = 2**61 - 1
MASK = 2**64 - 1
SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)


def splitmix64(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def weight(seed, word):
    block = splitmix64((word // 64 * SEEDS[0] + seed) & MASK)
    block = (block & PRIME) + (block >> 61)
    block = (block - PRIME if block >= PRIME else block) or 1
    return block * (splitmix64(~seed * (word % 64 + 1) & MASK) >> 38 | 1)


def fingerprint(tensor):
    size = tensor.element_size()
    data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    step = min(size, 4)
    words = [int.from_bytes(data[at:at + step], "little") for at in range(0, len(data), step)]
    return "".join(f"{sum(weight(seed, k) * word for k, word in enumerate(words) if word) % PRIME:016x}"
                   for seed in SEEDS)


def hashes(*words, code=0):
    """The answer without what says where it comes from."""
    answer = program.shardwright("hash", *words, "--json").must_exit(code).json
    return {key: answer[key] for key in answer if key not in ("path", "tool", "format", "seconds")}


def run(checks, other, scratch):
    states = {name: tensor for name, tensor in tensors().items() if tensor.numel() < 100_000}
    dcp.save(states, checkpoint_id=str(scratch / "dcp"))
    told = hashes(scratch / "dcp")
    for name, tensor in states.items():
        with checks.that(f"hash of {name} is that of its elements"):
            expect_equal(told["tensors"][name]["hash"], fingerprint(tensor), "hash")
            expect_equal(told["tensors"][name]["shape"], list(tensor.shape), "shape")
    save_file({name: tensor.contiguous() for name, tensor in states.items()
               if tensor.dtype != torch.complex64}, scratch / "whole.safetensors")
    torch.save(states, scratch / "whole.pt")
    with checks.that("torch.save, safetensors and DCP of one state have the same hashes"):
        expect_equal(hashes(scratch / "whole.pt"), told, "torch.save")
        for name, tensor in hashes(scratch / "whole.safetensors")["tensors"].items():
            expect_equal(tensor, told["tensors"][name], name)
    with checks.that("a state in which one bit differs has one other hash, and another total"):
        changed = {name: tensor.clone() for name, tensor in states.items()}
        changed["int64"].view(torch.uint8)[1, 2] ^= 4
        torch.save(changed, scratch / "changed.pt")
        differs = hashes(scratch / "changed.pt")
        expect_equal([name for name in states
                      if differs["tensors"][name] != told["tensors"][name]], ["int64"], "changed")
        expect(differs["total"] != told["total"], "the totals are equal")
    with checks.that("a large tensor that is transposed, or compressed, has the hash of its elements"):
        large = torch.arange(20_000_000, dtype=torch.int32).view(4000, 5000).t()
        torch.save({"w": large}, scratch / "turned.pt")
        save_file({"w": large.contiguous()}, scratch / "row-major.safetensors")
        writer = dcp.FileSystemWriter(scratch / "zstd", _extensions=[ZStandard()])
        dcp.save({"w": large.contiguous()}, storage_writer=writer)
        expected = hashes(scratch / "row-major.safetensors")
        for name in ("turned.pt", "zstd"):
            expect_equal(hashes(scratch / name, "--memory", "64M"), expected, name)
    with checks.that("two lists of lines differ in what differs"):
        lists = [program.shardwright("hash", scratch / name).must_exit(0).stdout.splitlines()
                 for name in ("whole.pt", "changed.pt")]
        expect_equal(len(set(lists[0]) ^ set(lists[1])), 4, "lines that differ")
