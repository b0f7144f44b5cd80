"""The program's names of dtypes as those of numpy; ml_dtypes has what numpy lacks."""

# numpy is imported late: that takes 0.1 s, and check does not need it.
_SIZES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1,
          "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1}


def numpy_dtype(name):
    """bf16 and fp8 need ml_dtypes. Without it they are unsigned integers with the same bits."""
    import numpy as np
    if name not in _SIZES:
        return np.dtype(name)
    try:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return np.dtype(f"u{_SIZES[name]}")


def is_of_numpy(name):
    """False for bf16 and fp8, which DLPack knows and numpy does not."""
    return name not in _SIZES


def size_of(name):
    """Bytes of an element."""
    return _SIZES.get(name) or numpy_dtype(name).itemsize
