#!/usr/bin/env python3
"""Writes a checkpoint of 64 GiB that takes next to no room: zeros, left out of its files as holes.

Two tensors of bfloat16, cut along dim 0: "embed" is one tile of half of it all, "head" two tiles of
a quarter, by two ranks. The items are what torch.save writes, the metadata are torch's own objects.
For the bar of memory: reshard it under --memory 256M and look at the peak of the resident set.

    make_sparse.py --out DIR [--gib 64]
"""

import argparse
import io
import os
import pathlib
import pickle
import tempfile

import torch
from torch.distributed.checkpoint import filesystem, metadata

COLUMNS = 16384
BLOCK = 1 << 20


class Holes(io.RawIOBase):
    """A file that is sought through where zeros would be written."""

    def __init__(self, path):
        self._file = open(path, "wb")
        self._zeros = bytes(BLOCK)

    def writable(self):
        return True

    def tell(self):
        return self._file.tell()

    def write(self, data):
        view = memoryview(data).cast("B")
        for at in range(0, len(view), BLOCK):
            block = view[at:at + BLOCK]
            if len(block) == BLOCK and block == self._zeros:
                self._file.seek(BLOCK, os.SEEK_CUR)
            else:
                self._file.write(block)
        return len(view)

    def close(self):
        if not self.closed:
            self._file.truncate()
            self._file.close()
        super().close()


def zeros(rows, path):
    """A tensor that is in a hole."""
    storage = torch.UntypedStorage.from_file(str(path), shared=True, nbytes=rows * COLUMNS * 2)
    return torch.empty(0, dtype=torch.bfloat16).set_(storage, 0, (rows, COLUMNS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--gib", type=int, default=64)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    rows = (arguments.gib << 30) // (COLUMNS * 2)
    tiles = {0: [("embed", 0, rows // 2), ("head", 0, rows // 4)],
             1: [("head", rows // 4, rows // 4)]}
    chunks, places = {}, {}
    for rank, of_rank in tiles.items():
        file = Holes(arguments.out / f"__{rank}_0.distcp")
        for fqn, begin, count in of_rank:
            at = file.tell()
            with tempfile.TemporaryDirectory(dir=arguments.out) as hole:
                torch.save(zeros(count, pathlib.Path(hole) / "zeros"), file)
            offsets = torch.Size((begin, 0))
            chunks.setdefault(fqn, []).append(
                metadata.ChunkStorageMetadata(offsets, torch.Size((count, COLUMNS))))
            places[metadata.MetadataIndex(fqn, offsets)] = filesystem._StorageInfo(
                f"__{rank}_0.distcp", at, file.tell() - at)
        file.close()
    properties = metadata.TensorProperties(dtype=torch.bfloat16)
    tensors = {fqn: metadata.TensorStorageMetadata(
        properties, torch.Size((sum(chunk.sizes[0] for chunk in of_tensor), COLUMNS)), of_tensor)
        for fqn, of_tensor in chunks.items()}
    with open(arguments.out / ".metadata", "wb") as out:
        pickle.dump(metadata.Metadata(tensors, storage_data=places), out)


if __name__ == "__main__":
    main()
