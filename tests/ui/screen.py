"""Pixels of the X screen; as a program: keeps a picture of it, screen.py OUT.png WIDTH HEIGHT."""

import ctypes
import struct
import sys
import zlib

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


def rows_of_screen(width, height):
    """A string of blue, green, red and a spare byte per pixel for each row."""
    image = x11.XGetImage(display, root, 0, 0, width, height, ALL_PLANES, Z_PIXMAP)
    line = image.contents.bytes_per_line
    pixels = ctypes.string_at(image.contents.data, line * height)
    x11.XDestroyImage(image)
    return [pixels[y * line:(y + 1) * line] for y in range(height)]


def write_png(path, width, height):
    lines = bytearray()
    for row in rows_of_screen(width, height):
        pixels = bytearray(width * 3)
        for byte in range(3):
            pixels[byte::3] = row[2 - byte:width * 4:4]
        lines += b"\0" + pixels
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   part(b"IDAT", zlib.compress(bytes(lines), 6)) + part(b"IEND", b""))


if __name__ == "__main__":
    write_png(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
