"""Boxes of a tensor as numpy arrays: a map of the file where the elements lie in one piece."""

import mmap
import os

import numpy as np

from ._program import run


def read(tensor, index, writeable=False):
    """tensor[index]: slices, integers, ... and None read the box that holds them; of arrays the
    whole tensor is read. `writeable`: an array of one's own, whose changes do not reach the file."""
    bounds, rest = _bounds(tensor.shape, index)
    whole = _one_map(tensor, bounds, writeable)
    if whole is None:
        whole = np.zeros([stop - start for start, stop in bounds], tensor.dtype)
        _fill(tensor, bounds, whole)
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
    for chunk in tensor.chunks:
        runs = chunk.get("runs")
        inside = all(offset <= start and stop <= offset + size for (start, stop), offset, size in
                     zip(bounds, chunk["offsets"], chunk["sizes"]))
        if inside and runs is not None and len(runs) == 1 and chunk["file"] is not None:
            mapped = _chunk(tensor, chunk, writeable)
            return mapped[tuple(slice(start - offset, stop - offset)
                                for (start, stop), offset in zip(bounds, chunk["offsets"]))]
    return None


def _chunk(tensor, chunk, writeable=False):
    """The elements of a chunk, row-major; mapped where they lie in one run."""
    path, runs, sizes = tensor._path_of(chunk["file"]), chunk["runs"], chunk["sizes"]
    wanted = int(np.prod(sizes, dtype=np.int64)) * tensor.dtype.itemsize
    if sum(run["length"] for run in runs) != wanted:
        raise tensor._missing(f"{wanted} bytes are expected in {chunk['file']}")
    if len(runs) == 1:
        if runs[0]["offset"] + runs[0]["length"] > os.path.getsize(path):
            raise tensor._missing(f"{chunk['file']} ends before the chunk does")
        return _mapped(path, runs[0], tensor.dtype, sizes, writeable)
    data = bytearray(wanted)
    view, at = memoryview(data), 0
    with open(path, "rb", buffering=0) as file:
        for run_ in runs:
            file.seek(run_["offset"])
            if file.readinto(view[at:at + run_["length"]]) != run_["length"]:
                raise tensor._missing(f"{chunk['file']} ends before the chunk does")
            at += run_["length"]
    return np.frombuffer(data, tensor.dtype).reshape(sizes)


def _mapped(path, run_, dtype, sizes, writeable):
    # numpy.memmap is a subclass whose slices cost 2 us each; this is a plain array over the map.
    page = mmap.ALLOCATIONGRANULARITY
    begin = run_["offset"] // page * page
    with open(path, "rb") as file:
        held = mmap.mmap(file.fileno(), run_["offset"] - begin + run_["length"],
                         access=mmap.ACCESS_COPY if writeable else mmap.ACCESS_READ, offset=begin)
    count = run_["length"] // dtype.itemsize
    return np.frombuffer(held, dtype, count, run_["offset"] - begin).reshape(sizes)


def _fill(tensor, bounds, out):
    """Puts what the chunks hold of the box into `out`. Elements of no chunk are an error."""
    if out.size == 0:
        return
    covered = np.zeros(out.shape, bool) if len(tensor.chunks) != 1 else None
    for chunk in tensor.chunks:
        here, there = [], []
        for (start, stop), offset, size in zip(bounds, chunk["offsets"], chunk["sizes"]):
            low, high = max(start, offset), min(stop, offset + size)
            here.append(slice(low - start, max(high, low) - start))
            there.append(slice(low - offset, max(high, low) - offset))
        if any(part.start == part.stop for part in here):
            continue
        if chunk.get("gone") or chunk["file"] is None:
            raise tensor._missing(f"the bytes of a chunk at {chunk['offsets']} are not there")
        if chunk.get("runs") is None:
            return _fill_by_values(tensor, bounds, out)
        out[tuple(here)] = _chunk(tensor, chunk)[tuple(there)]
        if covered is not None:
            covered[tuple(here)] = True
    if covered is not None and not covered.all():
        raise tensor._missing(f"{int(out.size - covered.sum())} elements are in no chunk")
    if covered is None and not all(offset <= start and stop <= offset + size for (start, stop),
                                   offset, size in zip(bounds, chunk["offsets"], chunk["sizes"])):
        raise tensor._missing("elements are in no chunk")
    return None


def _fill_by_values(tensor, bounds, out):
    """Where elements have to be decoded the program prints them, in text that reads back exactly."""
    shown = run("show", tensor._checkpoint.path, tensor.name, "--values", "--limit", "0")
    if shown.get("uncovered"):
        raise tensor._missing(f"{shown['uncovered']} elements are in no chunk")
    values = [complex(*one) if isinstance(one, list) else _number(one) for one in shown["values"]]
    whole = np.array(values, object).astype(_decoded(tensor)).reshape(tensor.shape)
    out[...] = whole[tuple(slice(start, stop) for start, stop in bounds)].astype(tensor.dtype)


def _number(value):
    return float(value) if isinstance(value, str) else value  # "NaN", "Infinity"


def _decoded(tensor):
    return tensor.dtype if tensor.dtype.kind in "biufc" else np.dtype("f4")
