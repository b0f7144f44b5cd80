"""What of a damaged checkpoint can still be known, derived with real torch and no Shardwright.

From failures.md, corrected by its section 0.7, for every tensor whose saved size is not the spec's:

  - S3, S4, S5-E1: what a rank saved under the wrong name of a box is that rank's own local tensor.
    So a chunk written by rank w belongs into the box that the spec gives to w; the other ranks'
    boxes are lost. (The writer is in the file's name: __w_n.distcp.)
  - S2: the halves were cut from the first owner's rows alone. Rows [t*q, +q) of the state of _w are
    rows [t*R/T, +q) of the true _w (R its rows, T tensor-parallel ranks), those of _v follow at
    [t*R/T + q, +q) of the same _w; the whole _v is lost.
  - exp_avg and exp_avg_sq are kept only where both are known: one without the other is not a state.

Every derived box is compared with the fixture's truth, so the derivation is itself checked.
"""

import io
import pathlib
import re

import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.metadata import MetadataIndex

import judge
from fake_ranks import Rank, box_of


class Chunk:
    def __init__(self, checkpoint, metadata, fqn, chunk):
        info = metadata.storage_data[MetadataIndex(fqn, chunk.offsets)]
        self.offsets = tuple(chunk.offsets)
        self.writer = int(re.match(r"__(\d+)_", info.relative_path).group(1))
        with open(pathlib.Path(checkpoint) / info.relative_path, "rb") as stream:
            stream.seek(info.offset)
            item = io.BytesIO(stream.read(info.length))
        self.tensor = torch.load(item, weights_only=True)


def damaged(checkpoint, spec, mislabelled=()):
    """{fqn: its chunks} of the tensors whose saved size is not the expected one, or that are named.
    """
    metadata = FileSystemReader(str(checkpoint)).read_metadata()
    return {fqn: [Chunk(checkpoint, metadata, fqn, chunk) for chunk in entry.chunks]
            for fqn, entry in metadata.state_dict_metadata.items()
            if fqn in spec and (list(entry.size) != spec[fqn]["shape"] or fqn in mislabelled)}


def box_of_writer(entry, writer):
    world = 1
    for size in entry["mesh"].values():
        world *= size
    coordinate = Rank(writer, world).coordinate(entry["mesh"])
    return box_of(entry["shape"], entry["mesh"], entry["placements"], coordinate)


def is_split(fqn, entry):
    return entry.get("role") == "swiglu" and re.search(r"_[wv]\.exp_avg(_sq)?$", fqn)


def placed(spec, fqn, chunk):
    """(fqn, offsets, sizes) where a chunk's bytes belong."""
    entry = spec[fqn]
    if is_split(fqn, entry):
        tensor_parallel, rows = entry["mesh"]["tp"], chunk.tensor.shape[0]
        base, state = fqn.rsplit(".", 1)
        block = chunk.offsets[0] // rows if rows else 0
        start = block * (entry["shape"][0] // tensor_parallel)
        if base.endswith("_v"):
            start += rows
        return f"{base[:-1]}w.{state}", (start, 0), tuple(chunk.tensor.shape)
    offsets, sizes = box_of_writer(entry, chunk.writer)
    if sizes != tuple(chunk.tensor.shape):
        raise AssertionError(f"{fqn}: rank {chunk.writer} owns {sizes}, saved "
                             f"{tuple(chunk.tensor.shape)}")
    return fqn, offsets, sizes


def box(offsets, sizes):
    return tuple(slice(o, o + n) for o, n in zip(offsets, sizes))


def kept_masks(checkpoint, spec, truth, mislabelled=()):
    """{fqn: True where an element survives} of the damaged tensors, compared with truth."""
    chunks = damaged(checkpoint, spec, mislabelled)
    masks = {fqn: torch.zeros(spec[fqn]["shape"], dtype=torch.bool) for fqn in chunks}
    for fqn in chunks:
        for chunk in chunks[fqn]:
            target, offsets, sizes = placed(spec, fqn, chunk)
            if not judge.same_bits(truth[target][box(offsets, sizes)], chunk.tensor):
                raise AssertionError(f"{fqn} at {chunk.offsets} is not {target} {offsets} {sizes}")
            masks[target][box(offsets, sizes)] = True
    for fqn in masks:
        if fqn.endswith(".exp_avg") and fqn + "_sq" in masks:
            both = masks[fqn] & masks[fqn + "_sq"]
            masks[fqn], masks[fqn + "_sq"] = both, both.clone()
    return masks


def lost_counts(masks):
    return {fqn: int((~mask).sum()) for fqn, mask in masks.items()}
