"""Drops a file on a window, as a file manager does by XDND: drop_file.py WINDOW X Y PATH.

Exit 0: the window took the drop; 1: it did not."""
import ctypes
import pathlib
import sys
import time

X = ctypes.CDLL("libX11.so.6")
LONGS = 24  # of an XEvent
CLIENT_MESSAGE, SELECTION_REQUEST, SELECTION_NOTIFY = 33, 30, 31
PROP_MODE_REPLACE, CURRENT_TIME = 0, 0
XDND_VERSION = 5

X.XOpenDisplay.restype = ctypes.c_void_p
X.XOpenDisplay.argtypes = [ctypes.c_char_p]
X.XInternAtom.restype = ctypes.c_ulong
X.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
X.XDefaultRootWindow.restype = ctypes.c_ulong
X.XDefaultRootWindow.argtypes = [ctypes.c_void_p]
X.XCreateSimpleWindow.restype = ctypes.c_ulong
X.XCreateSimpleWindow.argtypes = [ctypes.c_void_p, ctypes.c_ulong] + [ctypes.c_int] * 2 + \
    [ctypes.c_uint] * 3 + [ctypes.c_ulong] * 2
X.XSetSelectionOwner.argtypes = [ctypes.c_void_p] + [ctypes.c_ulong] * 3
X.XSendEvent.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long,
                         ctypes.c_void_p]
X.XPending.argtypes = [ctypes.c_void_p]
X.XNextEvent.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
X.XFlush.argtypes = [ctypes.c_void_p]
X.XChangeProperty.argtypes = [ctypes.c_void_p] + [ctypes.c_ulong] * 3 + [ctypes.c_int] * 2 + \
    [ctypes.c_char_p, ctypes.c_int]


class ClientMessage(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
                ("display", ctypes.c_void_p), ("window", ctypes.c_ulong),
                ("message_type", ctypes.c_ulong), ("format", ctypes.c_int),
                ("data", ctypes.c_long * 5)]


class SelectionRequest(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
                ("display", ctypes.c_void_p), ("owner", ctypes.c_ulong),
                ("requestor", ctypes.c_ulong), ("selection", ctypes.c_ulong),
                ("target", ctypes.c_ulong), ("property", ctypes.c_ulong),
                ("time", ctypes.c_ulong)]


class SelectionNotify(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
                ("display", ctypes.c_void_p), ("requestor", ctypes.c_ulong),
                ("selection", ctypes.c_ulong), ("target", ctypes.c_ulong),
                ("property", ctypes.c_ulong), ("time", ctypes.c_ulong)]


def main():
    target, x, y, path = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    display = X.XOpenDisplay(None)
    if not display:
        sys.exit("no display")
    atom = lambda name: X.XInternAtom(display, name.encode(), 0)
    source = X.XCreateSimpleWindow(display, X.XDefaultRootWindow(display), 0, 0, 1, 1, 0, 0, 0)
    X.XSetSelectionOwner(display, atom("XdndSelection"), source, CURRENT_TIME)

    def send(window, event):
        buffer = (ctypes.c_long * LONGS)()
        ctypes.memmove(buffer, ctypes.byref(event), ctypes.sizeof(event))
        X.XSendEvent(display, window, 0, 0, buffer)
        X.XFlush(display)

    def message(name, *data):
        filled = (ctypes.c_long * 5)(source, *data)
        send(target, ClientMessage(CLIENT_MESSAGE, 0, 1, display, target, atom(name), 32, filled))

    def answer(request):
        uri = (pathlib.Path(path).resolve().as_uri() + "\r\n").encode()
        X.XChangeProperty(display, request.requestor, request.property, request.target, 8,
                          PROP_MODE_REPLACE, uri, len(uri))
        send(request.requestor,
             SelectionNotify(SELECTION_NOTIFY, 0, 1, display, request.requestor,
                             request.selection, request.target, request.property, request.time))

    message("XdndEnter", XDND_VERSION << 24, atom("text/uri-list"), 0, 0)
    message("XdndPosition", 0, x << 16 | y, CURRENT_TIME, atom("XdndActionCopy"))
    dropped, end = False, time.time() + 20
    while time.time() < end:
        if not X.XPending(display):
            time.sleep(0.05)
            continue
        buffer = (ctypes.c_long * LONGS)()
        X.XNextEvent(display, buffer)
        kind = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_int))[0]
        if kind == SELECTION_REQUEST:
            answer(ctypes.cast(buffer, ctypes.POINTER(SelectionRequest)).contents)
        if kind != CLIENT_MESSAGE:
            continue
        came = ctypes.cast(buffer, ctypes.POINTER(ClientMessage)).contents
        if came.message_type == atom("XdndStatus") and not dropped:
            if came.data[1] & 1 == 0:
                sys.exit("the window refuses the drop")
            dropped = True
            message("XdndDrop", 0, CURRENT_TIME, 0, 0)
        if came.message_type == atom("XdndFinished"):
            sys.exit(0)
    sys.exit("the window does not answer")


main()
