"""A checkpoint as a mapping of names to lazy tensors."""

from __future__ import annotations

import collections.abc
import functools
import threading

from . import _verbs
from ._dtypes import is_of_numpy, numpy_dtype, torch_dtype
from ._library import Handle, public_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

    import numpy as np
    from torch import Tensor as TorchTensor

    from ._hashes import Hashes
    from ._report import Report
    StrPath = Union[str, os.PathLike[str]]
    Columns = Dict[str, List[Any]]
    Mesh = Union[str, Mapping[str, int]]
    Base = collections.abc.Mapping[str, "Tensor"]
else:
    Base = collections.abc.Mapping


def open(path: StrPath, *, spec: Optional[StrPath] = None, against: Optional[StrPath] = None,
         mesh: Optional[Mesh] = None) -> Checkpoint:
    """Opens a checkpoint in any format. Reads metadata only.

    `spec`, `against` and `mesh` say what is expected, for `check` and `repair`. Close it with
    `close()`, or use it in a `with` block; without either it is closed when nothing refers to it.
    """
    return Checkpoint(path, spec=spec, against=against, mesh=mesh)


class Checkpoint(Base):
    """Names to tensors. `path` is as resolved: the step that @latest stands for, without the password
    and the query of a URL."""

    path: str
    format: str
    entries: List[str]

    def __init__(self, path: StrPath, *, spec: Optional[StrPath] = None,
                 against: Optional[StrPath] = None, mesh: Optional[Mesh] = None) -> None:
        expected = {"spec": spec, "against": against, "mesh": mesh}
        self._expected = {key: value for key, value in expected.items() if value is not None}
        # The program is told the secrets of a URL apart from its path.
        self._secret = getattr(path, "_secret", None) or public_path(path)[1]
        self._handle = Handle(path)
        self.path, self.format = self._handle.path, self._handle.format
        listed = self._handle.list()
        self._rows = {row["fqn"]: (index, row) for index, row in enumerate(listed["tensors"])}
        self.entries = list(listed.get("objects", []))

    def close(self) -> None:
        """Gives connections and files back. Arrays that were read stay valid; reading is an error."""
        self._handle.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        return _opened_again, (type(self), self._secret, self.path, self._expected)

    def __fspath__(self) -> str:
        return self.path

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(self, *self._rows[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<shardwright.Checkpoint {self.path!r}: {self.format}, {len(self)} tensors>"

    def info(self) -> Dict[str, Any]:
        """Format, tensors, chunks, files, bytes, ranks."""
        return self._handle.info()

    def tensors(self) -> Columns:
        """Columns that pandas and polars take as they are: name, dtype, shape, chunks."""
        rows = [row for _, row in self._rows.values()]
        return {"tensor": [row["fqn"] for row in rows],
                "dtype": [row["dtype"] for row in rows],
                "shape": [tuple(row["shape"]) for row in rows],
                "chunks": [row["chunks"] for row in rows]}

    def chunks(self, *names: str) -> Columns:
        """Columns of every saved box: tensor, offsets, sizes, file, offset, length, rank."""
        columns: Columns = {key: [] for key in
                            ("tensor", "offsets", "sizes", "file", "offset", "length", "rank")}
        for name in names or self:
            index, row = self._rows[name]
            for number in range(row["chunks"]):
                columns["tensor"].append(name)
                for key, value in self._handle.chunk(index, number).items():
                    columns[key].append(value)
        return columns

    def check(self, **options: Any) -> Report:
        """What is wrong: `spec=`, `against=`, `mesh=`, `data=True`, and the other options of
        `shardwright check`."""
        return _verbs.check(self, **options)

    def findings(self, **options: Any) -> Columns:
        """The findings of `check` as columns."""
        return self.check(**options).columns()

    def stats(self, *names: str, **options: Any) -> Columns:
        """Columns of statistics; `names` may be shell patterns."""
        return _verbs.stats(self, *names, **options)

    def hash(self, *names: str, **options: Any) -> Hashes:
        """Name to hash: equal for the same elements in any chunks and format."""
        return _verbs.hash(self, *names, **options)

    def repair(self, **options: Any) -> Dict[str, Any]:
        return _verbs.repair(self, **options)


def _opened_again(kind, secret, path, expected):
    """Of a pickle. The secret stays in this process, and `path` finds it."""
    if secret is not None:
        public_path(secret)
    opened = kind(path, **expected)
    opened._secret = secret
    return opened


class Tensor:
    """Shape and dtype are known; elements are read when they are asked for."""

    name: str
    shape: Tuple[int, ...]
    dtype_name: str

    def __init__(self, checkpoint: Checkpoint, index: int, row: Dict[str, Any]) -> None:
        self._checkpoint, self._index = checkpoint, index
        self.name, self.shape, self.dtype_name = row["fqn"], tuple(row["shape"]), row["dtype"]
        self._chunks = row["chunks"]
        self._placed: Optional[List[Dict[str, Any]]] = None
        self._lock = threading.Lock()

    def __reduce__(self) -> Tuple[Any, ...]:
        return _tensor_of, (self._checkpoint, self.name)

    @property
    def _handle(self):
        return self._checkpoint._handle

    @functools.cached_property
    def _boxes(self):
        return [self._handle.box(self._index, chunk) for chunk in range(self._chunks)]

    @functools.cached_property
    def _element_bytes(self):
        return self._handle.element_bytes(self._index)

    def _run(self, chunk):
        return self._handle.run(self._index, chunk)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the arrays. `dtype_name` is that of the elements."""
        return numpy_dtype(self.dtype_name, self._element_bytes)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def nbytes(self) -> int:
        return self.size * int(self._element_bytes)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<shardwright.Tensor {self.name!r}: {list(self.shape)} {self.dtype_name}>"

    @property
    def chunks(self) -> List[Dict[str, Any]]:
        """The saved boxes, and where the elements of each are."""
        with self._lock:
            if self._placed is None:
                self._placed = self._handle.show(self._index)["chunks"]
            return self._placed

    def __getitem__(self, index: Any) -> Any:
        from ._read import read
        return read(self, index)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        values = self.numpy()
        if dtype is not None and values.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self.name}: {dtype} of {values.dtype} needs a copy")
            return values.astype(dtype)
        return values.copy() if copy else values

    def __dlpack__(self, **options: Any) -> Any:
        if not is_of_numpy(self.dtype_name):
            return self.torch().__dlpack__(**options)
        from ._read import read
        return read(self, ..., writeable=True).__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # the CPU

    def numpy(self) -> np.ndarray[Any, Any]:
        from ._read import read
        values: np.ndarray[Any, Any] = read(self, ...)
        return values

    def torch(self) -> TorchTensor:
        """A tensor of torch; bf16 and fp8 too, whether ml_dtypes is there or not. What is written
        into it is not written into the file."""
        import numpy as np
        import torch

        from ._read import read
        dtype = torch_dtype(self.dtype_name)
        values = np.ascontiguousarray(read(self, ..., writeable=True))
        bits = torch.from_numpy(values.reshape(-1).view(np.uint8))
        return bits.view(dtype).reshape(self.shape)


def _tensor_of(checkpoint, name):
    return checkpoint[name]
