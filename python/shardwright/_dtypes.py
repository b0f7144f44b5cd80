"""The program's names of dtypes as those of numpy; ml_dtypes has what numpy lacks."""

from __future__ import annotations

from ._program import ShardwrightError

# numpy is imported late: that takes 0.1 s, and check does not need it.
_OF_NUMPY = frozenset(("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64",
                       "uint32", "uint16", "uint8", "bool", "complex64", "complex128"))


def numpy_dtype(name, size):
    """bf16 and fp8 need ml_dtypes. Without it they are unsigned integers with the same bits, as are
    the dtypes that ml_dtypes lacks: fp4 in pairs, torch's bits and qints."""
    import numpy as np
    if name in _OF_NUMPY:
        return np.dtype(name)
    if size == 0:
        raise ShardwrightError("unsupported", "the checkpoint does not say the dtype of the tensor")
    try:
        import ml_dtypes
        found = np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError, TypeError):
        found = None
    return found if found is not None and found.itemsize == size else np.dtype(f"u{size}")


def is_of_numpy(name):
    """False for bf16, fp8 and others, of which DLPack knows more than numpy does."""
    return name in _OF_NUMPY


def torch_dtype(name):
    import torch
    found = getattr(torch, name, None)
    if isinstance(found, torch.dtype):
        return found
    raise ShardwrightError("unsupported", f"torch {torch.__version__} has no dtype {name}",
                           advice="numpy() gives its bits.")
