"""Hashes of live tensors: what `shardwright hash` says of the files they are saved to.

The hash is the sum of core/tensor/fingerprint.h, over words of 32 bits:

    F = sum over k of u(k // 64) * v(k % 64) * word_k      modulo p = 2^61 - 1

It adds up over the parts of a tensor. Each rank hashes its own part, and only two numbers per tensor
are gathered. int64 of torch wraps as uint64 does; shifts are masked where bits must be zero.
"""

from __future__ import annotations

import math

import torch

from ._hashes import Hashes

_P = (1 << 61) - 1
_SEEDS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)
_GOLDEN = 0x9E3779B97F4A7C15
_BLOCK = 64           # words
_SLAB = 1 << 22       # words at once


def hash_of(state, group=None):
    """Name to hash of the tensors of a state dict, nested as torch.distributed.checkpoint takes it.

    Every rank hashes its own part of a DTensor or ShardedTensor. All ranks of `group` (without: of
    the default group, if there is one) must call it. A plain tensor that several ranks hold must be
    equal on all of them. ValueError: it is not, or a part of a tensor is with none of these ranks, or
    another rank has failed.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return _joined([_own_parts(state)])
    # A rank that fails takes part all the same: the others would wait for it.
    own = failure = None
    try:
        own = _own_parts(state)
    except Exception as error:
        own, failure = f"{type(error).__name__}: {error}", error
    everywhere = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(everywhere, own, group=group)
    if failure is not None:
        raise failure
    for rank, parts in enumerate(everywhere):
        if isinstance(parts, str):
            raise ValueError(f"rank {rank} has no hashes: {parts}")
    return _joined(everywhere)


def _own_parts(state):
    from torch.distributed.checkpoint._nested_dict import flatten_state_dict
    flat, _ = flatten_state_dict(state)
    return {name: _own_part(name, value) for name, value in flat.items()
            if isinstance(value, torch.Tensor) or _is_sharded_tensor(value)}


def _joined(everywhere):
    """Every rank's {name: (dtype, shape, whether it is the whole, elements, a, b)} as one."""
    hashes, kinds = {}, {}
    for name in dict.fromkeys(name for own in everywhere for name in own):
        parts = [own[name] for own in everywhere if name in own]
        dtype, shape, is_whole = parts[0][:3]
        if any(part[:3] != parts[0][:3] for part in parts):
            raise ValueError(f"{name}: ranks hold it with different dtypes, shapes or cuts")
        if is_whole:
            if any(part != parts[0] for part in parts):
                raise ValueError(f"{name}: ranks hold different values of it")
            parts = parts[:1]
        held = sum(part[3] for part in parts)
        if held != math.prod(shape):
            raise ValueError(f"{name}: {math.prod(shape)} elements, and these ranks hold {held}")
        sums = [sum(part[4 + which] for part in parts) % _P for which in (0, 1)]
        hashes[name], kinds[name] = f"{sums[0]:016x}{sums[1]:016x}", (dtype, shape)
    return Hashes(hashes, kinds)


def _is_sharded_tensor(value):
    return type(value).__name__ == "ShardedTensor" and hasattr(value, "local_shards")


def _own_part(name, value):
    """What this rank adds."""
    if _is_sharded_tensor(value):
        shape = tuple(value.metadata().size)
        pieces = [(shard.tensor, [torch.arange(start, start + size) for start, size in
                                  zip(shard.metadata.shard_offsets, shard.metadata.shard_sizes)])
                  for shard in value.local_shards()]
        dtype, is_whole = value.metadata().tensor_properties.dtype, False
    elif hasattr(value, "placements") and hasattr(value, "device_mesh"):
        shape, dtype, is_whole = tuple(value.shape), value.dtype, False
        pieces = _pieces_of_dtensor(name, value)
    else:
        shape, dtype, is_whole = tuple(value.shape), value.dtype, True
        pieces = [(value, [torch.arange(extent) for extent in shape])]
    held, sums = 0, [0, 0]
    for piece, indices in pieces:
        if piece.device.type == "meta":
            raise ValueError(f"{name}: a tensor on the meta device has no elements")
        held += piece.numel()
        for which, added in enumerate(_sums_of_piece(piece.detach(), shape, indices)):
            sums[which] += added
    return (str(dtype).removeprefix("torch."), shape, is_whole, held, sums[0] % _P, sums[1] % _P)


def _pieces_of_dtensor(name, value):
    """The local tensor with its global index in every dimension; nothing where a replica of lower
    coordinate has it too."""
    indices = [torch.arange(extent) for extent in value.shape]
    coordinate = value.device_mesh.get_coordinate()
    if coordinate is None:
        return []
    for at, placement, size in zip(coordinate, value.placements, value.device_mesh.shape):
        if placement.is_partial():
            raise ValueError(f"{name}: its elements are sums that were not added up yet (Partial)")
        if placement.is_replicate():
            if at != 0:
                return []
            continue
        # _StridedShard too says by _split_tensor which elements are whose; it cuts dimension `dim`.
        dim = placement.dim
        line = indices[dim].reshape([-1 if other == dim else 1 for other in range(value.ndim)])
        split, _ = placement._split_tensor(line, size, with_padding=False, contiguous=True)
        indices[dim] = split[at].reshape(-1) if at < len(split) else indices[dim][:0]
    return [(value.to_local(), indices)]


def _sums_of_piece(piece, shape, indices):
    """The two sums over a piece whose global indices are the product of `indices`."""
    if piece.numel() == 0:
        return 0, 0
    words, parts = _words(piece)
    # Whole dimensions at the end, and one run of the dimension before them, lie in one piece.
    strides = [math.prod(shape[dim + 1:]) for dim in range(len(shape))]
    run = len(shape)
    while run > 0 and len(indices[run - 1]) == shape[run - 1]:
        run -= 1
    length, leading = math.prod(shape[run:]), run
    starts = torch.zeros(1, dtype=torch.int64)
    if run > 0 and _is_run(indices[run - 1]):
        leading, length = run - 1, length * len(indices[run - 1])
        starts = starts + indices[run - 1][0] * strides[run - 1]
    for dim in reversed(range(leading)):
        starts = (indices[dim][:, None] * strides[dim] + starts[None, :]).reshape(-1)
    return _sums_of_rows(words.reshape(len(starts), length * parts), starts * parts)


def _is_run(indices):
    return bool((indices[1:] - indices[:-1] == 1).all())


def _words(piece):
    """The bytes of the elements as words of 32 bits in int32, int16 or uint8; words per element."""
    size = piece.element_size()
    kind = {1: torch.uint8, 2: torch.int16}.get(size, torch.int32)
    flat = piece.contiguous().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return flat.view(kind), max(1, size // 4)


def _sums_of_rows(rows, starts):
    """`starts`: the word at which each row begins in the tensor."""
    sums = [0, 0]
    length = rows.shape[1]
    aligned = rows.shape[0] == 1 or (length % _BLOCK == 0 and bool((starts % _BLOCK == 0).all()))
    if rows.shape[0] > 1:
        step = max(1, _SLAB // length)
        for at in range(0, len(rows), step):
            _add(sums, rows[at:at + step], starts[at:at + step], aligned)
        return sums
    first, at = int(starts[0]), 0
    while at < length:  # slabs end where a block does
        stop = min(length, at + _SLAB - (first + at) % _BLOCK)
        _add(sums, rows[:, at:stop], torch.tensor([first + at]), True)
        at = stop
    return sums


def _add(sums, rows, starts, aligned):
    starts = starts.to(rows.device)
    if aligned:
        front = int(starts[0]) % _BLOCK if len(starts) == 1 else 0
        back = -(front + rows.shape[1]) % _BLOCK
        if front or back:
            rows = torch.nn.functional.pad(rows, (front, back))
        blocks = (starts // _BLOCK)[:, None] + torch.arange(rows.shape[1] // _BLOCK,
                                                            device=rows.device)
        sums_of_blocks = _sums_of_blocks(rows.reshape(-1, _BLOCK))
    else:
        at = starts[:, None] + torch.arange(rows.shape[1], device=rows.device)
        blocks, words = at // _BLOCK, _unsigned(rows)
        sums_of_blocks = [words * _word_weights(which, rows.device)[at % _BLOCK] for which in (0, 1)]
    for which in (0, 1):
        product = _times(_reduced(sums_of_blocks[which].reshape(-1)),
                         _block_weights(which, blocks.reshape(-1)))
        # Halves, so that a sum of 2^32 of them stays below 2^63.
        sums[which] += int((product >> 31).sum()) * (1 << 31) + int((product & 0x7FFFFFFF).sum())


def _unsigned(words):
    mask = {torch.uint8: 0xFF, torch.int16: 0xFFFF}.get(words.dtype, 0xFFFFFFFF)
    return words.to(torch.int64) & mask


def _sums_of_blocks(blocks):
    """Both sums of v * word of each row of 64 words, modulo 2^64. 64 products of 16 and 26 bits are
    exact in float64, and a product of matrices reads the words once."""
    weights = torch.stack([_word_weights(which, blocks.device) for which in (0, 1)], 1).double()
    if blocks.dtype != torch.int32:
        sums = (_halves(blocks) @ weights).to(torch.int64)
        return sums[:, 0], sums[:, 1]
    both = torch.zeros(_BLOCK, 2, 4, dtype=torch.float64, device=blocks.device)
    both[:, 0, :2], both[:, 1, 2:] = weights, weights  # little-endian: the low half first
    sums = (_halves(blocks.view(torch.int16)) @ both.reshape(2 * _BLOCK, 4)).to(torch.int64)
    return sums[:, 0] + (sums[:, 2] << 16), sums[:, 1] + (sums[:, 3] << 16)


def _halves(words):
    """Of 8 or 16 bits, as float64."""
    return words.double() if words.dtype == torch.uint8 else (words.int() & 0xFFFF).double()


def _signed(value):
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _shift(value, bits):
    """Of unsigned numbers."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _splitmix(value):
    value = (value ^ _shift(value, 30)) * _signed(0xBF58476D1CE4E5B9)
    value = (value ^ _shift(value, 27)) * _signed(0x94D049BB133111EB)
    return value ^ _shift(value, 31)


def _reduced(value):
    """Unsigned numbers modulo p."""
    value = (value & _P) + _shift(value, 61)
    return torch.where(value >= _P, value - _P, value)


def _block_weights(which, blocks):
    weight = _reduced(_splitmix(blocks * _signed(_GOLDEN) + _signed(_SEEDS[which])))
    return torch.where(weight == 0, torch.ones_like(weight), weight)


def _word_weights(which, device):
    at = torch.arange(1, _BLOCK + 1, dtype=torch.int64, device=device)
    return _shift(_splitmix(at * _signed(~_SEEDS[which])), 38) | 1


def _times(x, y):
    """Of numbers below p, modulo p: 2^61 is 1."""
    low, half = (1 << 31) - 1, 30
    x_high, x_low, y_high, y_low = x >> 31, x & low, y >> 31, y & low
    middle = x_high * y_low + x_low * y_high
    total = (x_high * y_high * 2 + (middle >> half) + ((middle & ((1 << half) - 1)) << 31)
             + _reduced(x_low * y_low))
    return _reduced(total)
