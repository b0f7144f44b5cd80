"""Moves the mouse over each control of a window under Xvfb and looks for its tip on the screen.

    python3 tips.py TIPS    lines "X Y NAME<tab>TIP", as the replay line `tips` prints them

A tip is drawn above or below its control: rows of pixels that change there are the tip.
"""

import ctypes
import subprocess
import sys
import time

WIDTH, HEIGHT, FOOTER = 1280, 684, 704  # the footer changes by itself
ALL_PLANES, Z_PIXMAP = 0xFFFFFFFF, 2


class XImage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("width", "height", "xoffset", "format")] + [
        ("data", ctypes.POINTER(ctypes.c_ubyte))] + [
        (name, ctypes.c_int) for name in ("byte_order", "bitmap_unit", "bitmap_bit_order",
                                          "bitmap_pad", "depth", "bytes_per_line")]


x11 = ctypes.CDLL("libX11.so.6")
x11.XOpenDisplay.restype = ctypes.c_void_p
x11.XDefaultRootWindow.argtypes, x11.XDefaultRootWindow.restype = [ctypes.c_void_p], ctypes.c_ulong
x11.XGetImage.restype = ctypes.POINTER(XImage)
x11.XGetImage.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_int,
                          ctypes.c_uint, ctypes.c_uint, ctypes.c_ulong, ctypes.c_int]
x11.XDestroyImage.argtypes = [ctypes.POINTER(XImage)]
display = x11.XOpenDisplay(None)
root = x11.XDefaultRootWindow(display)


def rows():
    image = x11.XGetImage(display, root, 0, 0, WIDTH, HEIGHT, ALL_PLANES, Z_PIXMAP)
    line = image.contents.bytes_per_line
    pixels = ctypes.string_at(image.contents.data, line * HEIGHT)
    x11.XDestroyImage(image)
    return [pixels[y * line:(y + 1) * line] for y in range(HEIGHT)]


def move(x, y):
    subprocess.run(["xdotool", "mousemove", str(x), str(y)], check=True)


def without_tip():
    move(WIDTH // 2, FOOTER)
    last = None
    for _ in range(50):
        time.sleep(0.15)
        now = rows()
        if now == last:
            return now
        last = now
    return last


def shows_tip(x, y, before):
    move(x, y)
    for _ in range(50):
        time.sleep(0.1)
        now = rows()
        changed = [row for row in range(HEIGHT) if now[row] != before[row]]
        if sum(abs(row - y) > 14 for row in changed) >= 12:
            return True
    return False


count = 0
for line in open(sys.argv[1]):
    place, tip = line.rstrip("\n").split("\t")
    x, y, name = place.split(" ", 2)
    if not tip:
        sys.exit(f"{name} has no tip")
    if not (0 <= int(x) < WIDTH and 0 <= int(y) < HEIGHT):
        continue  # scrolled out of sight
    if not shows_tip(int(x), int(y), without_tip()):
        sys.exit(f"no tip is shown over {name}: {tip}")
    count += 1
print(f"{count} controls show a tip")
sys.exit(0 if count >= 15 else "too few controls were tried")
