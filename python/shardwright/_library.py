"""libshardwright by ctypes: opens checkpoints and reads boxes of tensors in this process.

The functions and structs are those of core/capi/shardwright.h.
"""

import ctypes
import functools
import json
import os
import signal
import threading

from ._program import Cancelled, ShardwrightError, program

_VERSION = 1
_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_char_p), ("message", ctypes.c_char_p), ("file", ctypes.c_char_p),
                ("offset", ctypes.c_int64), ("tensor", ctypes.c_char_p),
                ("advice", ctypes.c_char_p)]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("spec", ctypes.c_char_p), ("against", ctypes.c_char_p),
                ("mesh", ctypes.c_char_p), ("memory_bytes", ctypes.c_uint64),
                ("progress", _PROGRESS), ("context", ctypes.c_void_p)]


class _Chunk(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("ndim", ctypes.c_uint32),
                ("offsets", ctypes.POINTER(ctypes.c_int64)),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("file", ctypes.c_char_p),
                ("offset", ctypes.c_int64), ("length", ctypes.c_int64), ("rank", ctypes.c_int64)]


class _Run(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("path", ctypes.c_char_p), ("offset", ctypes.c_uint64),
                ("length", ctypes.c_uint64)]


def path():
    """Of the library: $SHARDWRIGHT_LIBRARY, the one of the wheel, or the one next to the program."""
    said = os.environ.get("SHARDWRIGHT_LIBRARY")
    if said:
        return said
    beside = os.path.dirname(os.path.realpath(program()))
    for folder in (os.path.dirname(os.path.abspath(__file__)), beside,
                   os.path.join(os.path.dirname(beside), "lib")):
        for name in ("libshardwright.so.1", "libshardwright.so"):
            if os.path.exists(os.path.join(folder, name)):
                return os.path.join(folder, name)
    raise ShardwrightError("usage", "libshardwright.so.1 is neither in the package nor next to the "
                           "program", exit_code=3,
                           advice="pip install the wheel, or set SHARDWRIGHT_LIBRARY to it")


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(path())
    if library.shw_api_version() != _VERSION:
        raise ShardwrightError("usage", f"{path()} has version {library.shw_api_version()} of the "
                               f"interface, and {_VERSION} is needed", exit_code=3)
    handle, index = ctypes.c_void_p, ctypes.c_uint64
    longs = ctypes.POINTER(ctypes.c_int64)
    for name, result, arguments in (
            ("shw_open", handle, [ctypes.c_char_p, ctypes.POINTER(_Options)]),
            ("shw_close", None, [handle]),
            ("shw_path", ctypes.c_char_p, [handle]),
            ("shw_format", ctypes.c_char_p, [handle]),
            ("shw_find_tensor", ctypes.c_int64, [handle, ctypes.c_char_p, index]),
            ("shw_get_chunk", ctypes.c_int, [handle, index, index, ctypes.POINTER(_Chunk)]),
            ("shw_find_run", ctypes.c_int, [handle, index, index, ctypes.POINTER(_Run)]),
            ("shw_read", ctypes.c_int, [handle, index, longs, longs, ctypes.c_void_p, index]),
            ("shw_list", handle, [handle]),
            ("shw_info", handle, [handle]),
            ("shw_free", None, [handle]),
            ("shw_last_error", ctypes.POINTER(_Error), [])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _error():
    met = _library().shw_last_error().contents

    def text(value):
        return value.decode(errors="replace")

    kind = Cancelled if met.code == b"cancelled" else ShardwrightError
    where = f"{text(met.tensor)}: " if met.tensor else ""
    return kind(text(met.code), where + text(met.message), text(met.file) or None,
                None if met.offset < 0 else met.offset, text(met.advice))


class _Interruptible:
    """While a call of the library runs, Ctrl-C asks it to stop; then the usual handler is called.

    A handler that raises would raise into the library, where an exception is lost."""

    def __init__(self):
        self.asked = False
        self._handler = None

    def __enter__(self):
        is_main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGINT) if is_main else None
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, *_signal):
        self.asked = True

    def __exit__(self, *_error):
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if self.asked:
            self._handler(signal.SIGINT, None)


class Handle:
    """An opened checkpoint of the library. Ctrl-C ends the call that is running."""

    def __init__(self, where, memory=0):
        library = _library()
        self._running = threading.local()
        self._heard = _PROGRESS(self._hear)  # kept alive as long as the library may call it
        options = _Options(ctypes.sizeof(_Options), None, None, None, memory, self._heard, None)
        self._free, self._at = library.shw_close, None
        self._at = self._call(library.shw_open, os.fsencode(where), ctypes.byref(options))
        if not self._at:
            raise _error()
        self.path = os.fsdecode(library.shw_path(self._at))
        self.format = library.shw_format(self._at).decode()

    def __del__(self):
        if getattr(self, "_at", None):
            self._free(self._at)

    def _hear(self, _context, _done, _total):
        return int(self._running.call.asked)

    def _call(self, function, *words):
        with _Interruptible() as call:
            self._running.call = call
            return function(*words)

    def _json(self, function):
        text = self._call(function, self._at)
        if not text:
            raise _error()
        try:
            return json.loads(ctypes.string_at(text).decode(errors="replace"))
        finally:
            _library().shw_free(text)

    def list(self):
        return self._json(_library().shw_list)

    def info(self):
        return self._json(_library().shw_info)

    def find(self, name):
        encoded = name.encode(errors="surrogateescape")
        return _library().shw_find_tensor(self._at, encoded, len(encoded))

    def box(self, tensor, chunk):
        """[start, stop) of a chunk per dimension."""
        out = _Chunk(ctypes.sizeof(_Chunk))
        if _library().shw_get_chunk(self._at, tensor, chunk, ctypes.byref(out)) != 0:
            raise _error()
        return [(out.offsets[d], out.offsets[d] + out.sizes[d]) for d in range(out.ndim)]

    def run(self, tensor, chunk):
        """(path, offset, bytes) of a chunk whose elements are in one run of a file, or None."""
        out = _Run(ctypes.sizeof(_Run))
        found = _library().shw_find_run(self._at, tensor, chunk, ctypes.byref(out))
        # One that cannot be found is an error of the read that asks for its elements.
        return (os.fsdecode(out.path), out.offset, out.length) if found == 0 else None

    def read(self, tensor, bounds, out):
        """The elements of the box into `out`, a C-contiguous array."""
        longs = ctypes.c_int64 * len(bounds)
        done = self._call(_library().shw_read, self._at, tensor,
                          longs(*(start for start, _ in bounds)),
                          longs(*(stop for _, stop in bounds)), out.ctypes.data, out.nbytes)
        if done != 0:
            raise _error()
