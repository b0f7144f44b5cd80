"""Files mapped into memory. `mmap.mmap` keeps a file open for every map, and a process may have
about 1,000 open files; these maps keep none open."""

from __future__ import annotations

import ctypes
import os
import threading

_READ, _WRITE, _SHARED, _PRIVATE = 1, 2, 1, 2  # the same on all processors of Linux
PAGE = os.sysconf("SC_PAGESIZE")

_libc = ctypes.CDLL(None, use_errno=True)
_mmap, _munmap = _libc.mmap, _libc.munmap
_mmap.restype, _munmap.restype = ctypes.c_void_p, ctypes.c_int
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                  ctypes.c_long]
_munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value


class Map:
    """Bytes of an open file from a page's begin on. numpy.asarray() takes it, and the array keeps it
    alive. What is written into a private one does not reach the file."""

    def __init__(self, fd, offset, length, is_private):
        self._at = None
        access = _READ | _WRITE if is_private else _READ
        at = _mmap(None, length, access, _PRIVATE if is_private else _SHARED, fd, offset)
        if at is None or at == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._at, self._length = at, length
        self.__array_interface__ = {"version": 3, "shape": (length,), "typestr": "|u1",
                                    "data": (at, not is_private)}

    def __del__(self, unmap=_munmap):
        if self._at is not None:
            unmap(self._at, self._length)


class FileMaps:
    """One map of each file, shared by all tensors in it. A file that was replaced is mapped anew."""

    def __init__(self):
        self._lock, self._held = threading.Lock(), {}

    def file(self, path):
        """The bytes of the whole file, which cannot be written. OSError: it cannot be mapped."""
        import numpy as np
        with self._lock:
            held = self._held.get(path)
            if held is not None and held[0] == _identity(os.stat(path)):
                return held[1]
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                state = os.fstat(fd)
                array = np.asarray(Map(fd, 0, state.st_size, is_private=False))
            finally:
                os.close(fd)
            self._held[path] = (_identity(state), array)
            return array

    def clear(self):
        with self._lock:
            self._held.clear()


def _identity(state):
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def private(path, offset, length):
    """A map of one's own of these bytes. OSError: it cannot be mapped."""
    import numpy as np
    begin = offset // PAGE * PAGE
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        held = np.asarray(Map(fd, begin, offset - begin + length, is_private=True))
    finally:
        os.close(fd)
    return held[offset - begin:]
