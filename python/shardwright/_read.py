"""Boxes of a tensor as numpy arrays: a map of the file where the elements are in one piece."""

from __future__ import annotations

import os

import numpy as np

from . import _maps

# Below it an array of one's own is copied: that is as quick, and a process has 65,530 maps.
_SMALL = 1 << 16


def read(tensor, index, writeable=False):
    """tensor[index]: slices, integers, ... and None read the box that holds them; of arrays, lists and
    bools the whole tensor is read. `writeable`: an array of one's own, whose changes do not reach the
    file."""
    words = index if isinstance(index, tuple) else (index,)
    if all(map(_is_basic, words)):
        bounds, rest = _bounds(tensor.shape, words)
    else:
        bounds, rest = [(0, extent) for extent in tensor.shape], index
    whole = _one_map(tensor, bounds, writeable)
    if whole is None:
        whole = np.empty([stop - start for start, stop in bounds], tensor.dtype)
        if whole.size:
            tensor._handle.read(tensor._index, bounds, whole)
    return whole[rest]


def _is_basic(word):
    """False for what numpy takes as an array of indices or as a mask."""
    if word is None or word is Ellipsis or isinstance(word, (slice, np.integer)):
        return True
    is_array = isinstance(word, (bool, np.bool_, list, tuple)) or hasattr(word, "__array__")
    if not is_array and not hasattr(word, "__index__"):
        raise IndexError(f"{word!r} is not an index of a tensor")
    return not is_array


def _bounds(shape, words):
    """The box that is read, [start, stop) per dimension, and what is then taken of it."""
    taken = sum(word is not None and word is not Ellipsis for word in words)
    dots = sum(word is Ellipsis for word in words)
    if dots > 1 or taken > len(shape):
        raise IndexError(f"{words!r} is not an index of a tensor of shape {list(shape)}")
    # With dots in the index numpy gives an array, without them a scalar where no dimension is left.
    rest, bounds, dim = [], [], 0
    for word in words if dots else words + (Ellipsis,):
        if word is None:
            rest.append(None)
        elif word is Ellipsis:
            for _ in range(len(shape) - taken):
                bounds.append((0, shape[dim]))
                rest.append(slice(None))
                dim += 1
        else:
            bound, after = _bound(word, shape[dim], dim)
            bounds.append(bound)
            rest.append(after)
            dim += 1
    return bounds, tuple(rest) + (Ellipsis,) * dots


def _bound(word, extent, dim):
    if isinstance(word, slice):
        start, stop, step = word.indices(extent)
        count = len(range(start, stop, step))
        if count == 0:
            return (0, 0), slice(None)
        last = start + (count - 1) * step
        if step < 0:
            return (last, start + 1), slice(None, None, step)
        return (start, last + 1), slice(None, None, step)
    at = word.__index__()
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for dimension {dim} of extent {extent}")
    at %= extent
    return (at, at + 1), 0


def _one_map(tensor, bounds, writeable):
    """A view of the mapped file where one chunk holds the box in one run; else None."""
    if any(start == stop for start, stop in bounds):
        return None
    for chunk, box in enumerate(tensor._boxes):
        inside = len(box) == len(bounds) and all(
            low <= start and stop <= high for (start, stop), (low, high) in zip(bounds, box))
        if not inside:
            continue
        run = tensor._run(chunk)
        mapped = None if run is None else _map_run(
            tensor._handle.maps, run, tensor.dtype, [high - low for low, high in box], writeable)
        if mapped is not None:
            return mapped[tuple(slice(start - low, stop - low)
                                for (start, stop), (low, _) in zip(bounds, box))]
    return None


def _map_run(maps, run, dtype, sizes, writeable):
    """The elements of a run (path, offset, bytes); None where it does not hold them, or where the
    file cannot be mapped. Then they are read, and the library says what is wrong."""
    path, offset, length = run
    if int(np.prod(sizes, dtype=np.int64)) * dtype.itemsize != length:
        return None
    try:
        if writeable and length >= _SMALL:
            if offset + length > os.path.getsize(path):
                return None
            held = _maps.private(path, offset, length)
        else:
            held = maps.file(path)[offset:offset + length]
            if held.nbytes != length:
                return None
            held = held.copy() if writeable else held
    except OSError:
        return None
    return held.view(dtype).reshape(sizes)
