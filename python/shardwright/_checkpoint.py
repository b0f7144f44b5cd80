"""A checkpoint as a mapping of names to lazy tensors."""

import collections.abc
import os
import threading

from . import _verbs
from ._dtypes import numpy_dtype, size_of
from ._program import ShardwrightError, run


def open(path, *, spec=None, against=None, mesh=None):
    """Opens a checkpoint in any format. Reads metadata only.

    `spec`, `against` and `mesh` say what is expected, for `check` and `repair`.
    """
    return Checkpoint(path, spec=spec, against=against, mesh=mesh)


class Checkpoint(collections.abc.Mapping):
    """Names to tensors. `path` is as resolved: the step that @latest stands for."""

    def __init__(self, path, **expected):
        self._expected = {key: value for key, value in expected.items() if value is not None}
        listed = run("ls", path)
        self.path = listed.get("path", os.path.abspath(path))
        self.format = listed.get("format")
        self._rows = {row["fqn"]: row for row in listed["tensors"]}
        self.entries = list(listed.get("objects", []))

    def __getitem__(self, name):
        return Tensor(self, self._rows[name])

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)

    def __repr__(self):
        return f"<shardwright.Checkpoint {self.path!r}: {self.format}, {len(self)} tensors>"

    def info(self):
        """Format, tensors, chunks, files, bytes, ranks."""
        return run("info", self.path)

    def tensors(self):
        """Columns that pandas and polars take as they are: name, dtype, shape, chunks."""
        rows = list(self._rows.values())
        return {"tensor": [row["fqn"] for row in rows],
                "dtype": [row["dtype"] for row in rows],
                "shape": [tuple(row["shape"]) for row in rows],
                "chunks": [row["chunks"] for row in rows]}

    def chunks(self, *names):
        """Columns of every saved box: tensor, offsets, sizes, file, offset, length, rank."""
        columns = {key: [] for key in
                   ("tensor", "offsets", "sizes", "file", "offset", "length", "rank")}
        for name in names or self:
            for chunk in self[name].chunks:
                columns["tensor"].append(name)
                columns["offsets"].append(tuple(chunk["offsets"]))
                columns["sizes"].append(tuple(chunk["sizes"]))
                columns["rank"].append(chunk["writer"])
                for key in ("file", "offset", "length"):
                    columns[key].append(chunk[key])
        return columns

    def _with_expected(self, options):
        return {**self._expected, **options}

    def check(self, **options):
        """What is wrong: `spec=`, `against=`, `mesh=`, `data=True`, and the other options of
        `shardwright check`."""
        return _verbs.check(self.path, **self._with_expected(options))

    def findings(self, **options):
        """The findings of `check` as columns."""
        return self.check(**options).columns()

    def stats(self, *names, **options):
        """Columns of statistics; `names` may be shell patterns."""
        return _verbs.stats(self.path, *names, **options)

    def hash(self, *names, **options):
        """Name to hash: equal for the same elements in any chunks and format."""
        return _verbs.hash(self.path, *names, **options)

    def repair(self, **options):
        return _verbs.repair(self.path, **self._with_expected(options))


class Tensor:
    """Shape and dtype are known; elements are read when they are asked for."""

    def __init__(self, checkpoint, row):
        self._checkpoint, self.name = checkpoint, row["fqn"]
        self.shape, self.dtype_name = tuple(row["shape"]), row["dtype"]
        self._placed, self._lock = None, threading.Lock()

    @property
    def dtype(self):
        return numpy_dtype(self.dtype_name)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def nbytes(self):
        return self.size * size_of(self.dtype_name)

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self):
        return f"<shardwright.Tensor {self.name!r}: {list(self.shape)} {self.dtype_name}>"

    @property
    def chunks(self):
        """The saved boxes, and where the elements of each lie."""
        with self._lock:
            if self._placed is None:
                self._placed = run("show", self._checkpoint.path, self.name, "--places")["chunks"]
            return self._placed

    def __getitem__(self, index):
        from ._read import read
        return read(self, index)

    def __array__(self, dtype=None, copy=None):
        values = self[...]
        return values if dtype is None else values.astype(dtype)

    def __dlpack__(self, **options):
        from ._read import read
        return read(self, ..., writeable=True).__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)  # the CPU

    def numpy(self):
        return self[...]

    def torch(self):
        """A tensor of torch; bf16 and fp8 too, whether ml_dtypes is there or not. What is written
        into it is not written into the file."""
        import numpy as np
        import torch
        from ._read import read
        values = np.ascontiguousarray(read(self, ..., writeable=True))
        bits = torch.from_numpy(values.reshape(-1).view(np.uint8))
        return bits.view(getattr(torch, self.dtype_name)).reshape(self.shape)

    def _path_of(self, file):
        base = self._checkpoint.path
        if not os.path.isdir(base):
            base = os.path.dirname(base)
        return os.path.join(base, file)

    def _missing(self, what):
        return ShardwrightError("damaged", f"{self.name}: {what}",
                                advice=f"shardwright check {self._checkpoint.path}")
