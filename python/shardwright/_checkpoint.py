"""A checkpoint as a mapping of names to lazy tensors."""

import collections.abc
import functools
import threading

from . import _verbs
from ._dtypes import is_of_numpy, numpy_dtype, size_of
from ._library import Handle
from ._program import run


def open(path, *, spec=None, against=None, mesh=None):
    """Opens a checkpoint in any format. Reads metadata only.

    `spec`, `against` and `mesh` say what is expected, for `check` and `repair`.
    """
    return Checkpoint(path, spec=spec, against=against, mesh=mesh)


class Checkpoint(collections.abc.Mapping):
    """Names to tensors. `path` is as resolved: the step that @latest stands for."""

    def __init__(self, path, **expected):
        self._expected = {key: value for key, value in expected.items() if value is not None}
        self._handle = Handle(path)
        self.path, self.format = self._handle.path, self._handle.format
        listed = self._handle.list()
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
        return self._handle.info()

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
        self._chunks = row["chunks"]
        self._placed, self._lock = None, threading.Lock()

    @property
    def _handle(self):
        return self._checkpoint._handle

    @functools.cached_property
    def _index(self):
        return self._handle.find(self.name)

    @functools.cached_property
    def _boxes(self):
        return [self._handle.box(self._index, chunk) for chunk in range(self._chunks)]

    def _map(self, chunk, writeable):
        from ._read import map_run
        run_ = self._handle.run(self._index, chunk)
        sizes = [high - low for low, high in self._boxes[chunk]]
        return None if run_ is None else map_run(run_, self.dtype, sizes, writeable)

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
        """The saved boxes, and where the elements of each are."""
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
        if not is_of_numpy(self.dtype_name):
            return self.torch().__dlpack__(**options)
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
