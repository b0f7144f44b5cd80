"""Boxes of a tensor as numpy arrays: a map of the file where the elements are in one piece."""

import mmap
import os

import numpy as np


def read(tensor, index, writeable=False):
    """tensor[index]: slices, integers, ... and None read the box that holds them; of arrays the
    whole tensor is read. `writeable`: an array of one's own, whose changes do not reach the file."""
    bounds, rest = _bounds(tensor.shape, index)
    whole = _one_map(tensor, bounds, writeable)
    if whole is None:
        whole = np.empty([stop - start for start, stop in bounds], tensor.dtype)
        if whole.size:
            tensor._handle.read(tensor._index, bounds, whole)
    return whole[rest]


def _bounds(shape, index):
    """The box that is read, [start, stop) per dimension, and what is then taken of it."""
    words = index if isinstance(index, tuple) else (index,)
    taken = sum(word is not None and word is not Ellipsis for word in words)
    if any(isinstance(word, (list, np.ndarray)) for word in words):
        return [(0, extent) for extent in shape], index
    if sum(word is Ellipsis for word in words) > 1 or taken > len(shape):
        raise IndexError(f"{index!r} is not an index of a tensor of shape {list(shape)}")
    if Ellipsis not in words:
        words += (Ellipsis,)
    bounds, rest, dim = [], [], 0
    for word in words:
        if word is None:
            rest.append(None)
        elif word is Ellipsis:
            for _ in range(len(shape) - taken):
                bounds.append((0, shape[dim]))
                rest.append(slice(None))
                dim += 1
        else:
            bounds.append(None)
            bounds[-1], after = _bound(word, shape[dim], dim)
            rest.append(after)
            dim += 1
    return bounds, tuple(rest)


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
        mapped = tensor._map(chunk, writeable)
        if mapped is not None:
            return mapped[tuple(slice(start - low, stop - low)
                                for (start, stop), (low, _) in zip(bounds, box))]
    return None


def map_run(run, dtype, sizes, writeable=False):
    """The elements of a run (path, offset, bytes); None where it does not hold them."""
    path, offset, length = run
    count = int(np.prod(sizes, dtype=np.int64))
    if count * dtype.itemsize != length or offset + length > os.path.getsize(path):
        return None
    # numpy.memmap is a subclass whose slices cost 2 us each; this is a plain array over the map.
    page = mmap.ALLOCATIONGRANULARITY
    begin = offset // page * page
    with open(path, "rb") as file:
        held = mmap.mmap(file.fileno(), offset - begin + length,
                         access=mmap.ACCESS_COPY if writeable else mmap.ACCESS_READ, offset=begin)
    return np.frombuffer(held, dtype, count, offset - begin).reshape(sizes)
