"""libshardwright by ctypes: opens checkpoints and reads boxes of tensors in this process.

The functions and structs are those of core/capi/shardwright.h.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import signal
import threading

from ._maps import FileMaps
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


class _Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("name", ctypes.c_void_p), ("name_bytes", ctypes.c_uint64),
                ("dtype", ctypes.c_char_p), ("element_bytes", ctypes.c_uint32),
                ("ndim", ctypes.c_uint32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("chunks", ctypes.c_uint64)]


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
            ("shw_public_path", ctypes.c_char_p, [ctypes.c_char_p]),
            ("shw_get_tensor", ctypes.c_int, [handle, index, ctypes.POINTER(_Tensor)]),
            ("shw_get_chunk", ctypes.c_int, [handle, index, index, ctypes.POINTER(_Chunk)]),
            ("shw_find_run", ctypes.c_int, [handle, index, index, ctypes.POINTER(_Run)]),
            ("shw_read", ctypes.c_int, [handle, index, longs, longs, ctypes.c_void_p, index]),
            ("shw_show", handle, [handle, index]),
            ("shw_list", handle, [handle]),
            ("shw_info", handle, [handle]),
            ("shw_free", None, [handle]),
            ("shw_last_error", ctypes.POINTER(_Error), [])):
        function = getattr(library, name, None)
        if function is None:
            raise ShardwrightError("usage", f"{path()} is older than this module: it has no {name}",
                                   exit_code=3)
        function.restype, function.argtypes = result, arguments
    return library


def public_path(where):
    """(the path without the password and the query of a URL, the path as typed if it has such a
    secret). This process remembers the secret: the library opens the public path with it."""
    typed = os.fspath(where)
    shown = os.fsdecode(_library().shw_public_path(os.fsencode(typed)))
    return shown, None if shown == os.fsdecode(typed) else os.fsdecode(typed)


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


_calls = threading.local()  # `running` is the call that a thread is in


def _hear(_context, _done, _total):
    return int(_calls.running.asked)


# Of the module, because one that knew its handle would keep it alive.
_HEARD = _PROGRESS(_hear)


def _call(function, *words):
    """Ctrl-C ends it."""
    with _Interruptible() as call:
        before, _calls.running = getattr(_calls, "running", None), call
        try:
            return function(*words)
        finally:
            _calls.running = before


class Handle:
    """An opened checkpoint of the library. Threads may share it."""

    def __init__(self, where, memory=0):
        library = _library()
        self._guard = threading.RLock()  # a signal handler may close what its own thread is reading
        self._users, self._is_closed, self._free = 0, False, library.shw_close
        self._at, self.maps = None, FileMaps()
        options = _Options(ctypes.sizeof(_Options), None, None, None, memory, _HEARD, None)
        self._at = _call(library.shw_open, os.fsencode(where), ctypes.byref(options))
        if not self._at:
            raise _error()
        self.path = os.fsdecode(library.shw_path(self._at))
        self.format = library.shw_format(self._at).decode()

    def close(self):
        """The last call that is running frees the checkpoint."""
        with self._guard:
            self._is_closed = True
            at = None if self._users else self._at
            if at:
                self._at = None
        self.maps.clear()
        if at:
            self._free(at)

    def __del__(self):
        if getattr(self, "_at", None):
            self._free(self._at)

    def __enter__(self):
        with self._guard:
            if self._is_closed:
                raise ShardwrightError("usage", "the checkpoint was closed", exit_code=3)
            self._users += 1
            return self._at

    def __exit__(self, *_error):
        with self._guard:
            self._users -= 1
            is_last = self._is_closed and not self._users
        if is_last:
            self.close()

    def _json(self, function, *words):
        with self as at:
            text = _call(function, at, *words)
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

    def show(self, tensor):
        """As `shardwright show --places` of a tensor."""
        return self._json(_library().shw_show, tensor)

    def element_bytes(self, tensor):
        """0 where the dtype is not known."""
        out = _Tensor(ctypes.sizeof(_Tensor))
        with self as at:
            if _library().shw_get_tensor(at, tensor, ctypes.byref(out)) != 0:
                raise _error()
            return out.element_bytes

    def _chunk(self, at, tensor, chunk):
        out = _Chunk(ctypes.sizeof(_Chunk))
        if _library().shw_get_chunk(at, tensor, chunk, ctypes.byref(out)) != 0:
            raise _error()
        return out

    def box(self, tensor, chunk):
        """[start, stop) of a chunk per dimension."""
        with self as at:
            out = self._chunk(at, tensor, chunk)
            return [(out.offsets[d], out.offsets[d] + out.sizes[d]) for d in range(out.ndim)]

    def chunk(self, tensor, chunk):
        """The columns of Checkpoint.chunks(); None for what the checkpoint does not say."""
        with self as at:
            out = self._chunk(at, tensor, chunk)
            has_item = out.file is not None
            return {"offsets": tuple(out.offsets[:out.ndim]), "sizes": tuple(out.sizes[:out.ndim]),
                    "file": out.file.decode(errors="replace") if has_item else None,
                    "offset": out.offset if has_item else None,
                    "length": out.length if has_item else None,
                    "rank": None if out.rank < 0 else out.rank}

    def run(self, tensor, chunk):
        """(path, offset, bytes) of a chunk whose elements are in one run of a file, or None."""
        out = _Run(ctypes.sizeof(_Run))
        with self as at:
            found = _library().shw_find_run(at, tensor, chunk, ctypes.byref(out))
            # One that cannot be found is an error of the read that asks for its elements.
            return (os.fsdecode(out.path), out.offset, out.length) if found == 0 else None

    def read(self, tensor, bounds, out):
        """The elements of the box into `out`, a C-contiguous array."""
        longs = ctypes.c_int64 * len(bounds)
        with self as at:
            done = _call(_library().shw_read, at, tensor,
                         longs(*(start for start, _ in bounds)),
                         longs(*(stop for _, stop in bounds)), out.ctypes.data, out.nbytes)
            if done != 0:
                raise _error()
