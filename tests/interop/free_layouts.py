"""Checkpoints that no framework would write so, and that are right: any tiling, dtype and stride.

layouts.py has the habits of frameworks. Here a tensor of any dtype that torch has, of 0 to 7
dimensions, is cut at random into boxes that random ranks hold, some of them column-major.
"""

import math

import torch

from fake_ranks import Piece, cut

DTYPES = [torch.float32] * 4 + [torch.bfloat16] * 2 + [
    torch.float16, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool, torch.complex64, torch.complex128, torch.complex32, torch.uint16, torch.uint32,
    torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz, torch.float8_e8m0fnu]
NAMES = ("model.layers.{}.w", "a{}", "optimizer.state.{}.exp_avg_x", "x/y {}", "é{}.b")


def any_shape(random):
    kind = random.random()
    if kind < 0.07:
        return ()
    if kind < 0.12:
        return tuple(random.choice((0, 1, 3)) for _ in range(random.randint(1, 3)))
    if kind < 0.27:
        return tuple(random.randint(1, 3) for _ in range(random.randint(5, 7)))
    return tuple(random.randint(1, 12) for _ in range(random.randint(1, 4)))


def any_tensor(random, dtype=None):
    """Numbers of common size, or any bits at all: NaN of every kind among them."""
    dtype, shape = dtype or random.choice(DTYPES), any_shape(random)
    generator = torch.Generator().manual_seed(random.getrandbits(31))
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_complex and random.random() < 0.5:
        return (torch.randn(shape, generator=generator) * 10).abs().to(dtype)
    bits = torch.randint(0, 256, (math.prod(shape) * dtype.itemsize,), generator=generator)
    if not bits.numel():
        return torch.empty(shape, dtype=dtype)
    return bits.to(torch.uint8).view(dtype).reshape(shape).clone()


def any_boxes(random, shape):
    boxes = [((0,) * len(shape), tuple(shape))]
    for _ in range(random.choice((0, 0, 1, 3, 6))):
        number = random.randrange(len(boxes))
        offsets, sizes = boxes[number]
        dims = [d for d in range(len(sizes)) if sizes[d] > 1]
        if not dims:
            continue
        dim = random.choice(dims)
        at = random.randint(1, sizes[dim] - 1)
        first, second, moved = list(sizes), list(sizes), list(offsets)
        first[dim], second[dim], moved[dim] = at, sizes[dim] - at, offsets[dim] + at
        boxes[number] = (offsets, tuple(first))
        boxes.append((tuple(moved), tuple(second)))
    random.shuffle(boxes)
    return boxes


def free_layout(random):
    """(truth, number of ranks, the state dict of a rank)"""
    world = random.randint(1, 5)
    truth = {random.choice(NAMES).format(number): any_tensor(random)
             for number in range(random.randint(2, 7))}
    held = {fqn: [(random.randrange(world), *box) for box in any_boxes(random, tensor.shape)]
            for fqn, tensor in truth.items()}
    column_major = {fqn for fqn in truth if random.random() < 0.2}

    def state_dict_of(rank):
        state = {"step": 17, "groups": {"lr": 1e-3}} if rank.number == 0 else {}
        for fqn, boxes in held.items():
            mine = [cut(truth[fqn], offsets, sizes) for owner, offsets, sizes in boxes
                    if owner == rank.number]
            places = [offsets for owner, offsets, _ in boxes if owner == rank.number]
            if fqn in column_major and truth[fqn].dim() > 1:
                mine = [t.transpose(0, -1).contiguous().transpose(0, -1) for t in mine]
            if mine:
                state[fqn] = [Piece(local, offsets, tuple(truth[fqn].shape))
                              for local, offsets in zip(mine, places)]
        return state
    return truth, world, state_dict_of


def spec_of(truth):
    return {fqn: {"shape": list(tensor.shape), "dtype": str(tensor.dtype)[6:]}
            for fqn, tensor in truth.items()}
