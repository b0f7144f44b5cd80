#!/usr/bin/env python3
"""A checkpoint of random numbers in safetensors, as large as a killed run needs to be met in the middle.

    make_large.py FOLDER TENSORS ROWS COLUMNS
"""
import json
import os
import random
import struct
import sys

folder, tensors, rows, columns = sys.argv[1], *map(int, sys.argv[2:5])
os.makedirs(folder)
dice = random.Random(7)
length = 4 * rows * columns
header = {f"layers.{i}.weight": {"dtype": "F32", "shape": [rows, columns],
                                 "data_offsets": [i * length, (i + 1) * length]} for i in range(tensors)}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(os.path.join(folder, "model.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for _ in range(tensors):
        # No NaN and no infinity among them: a check of the values has nothing to say.
        file.write(bytes(dice.randbytes(length)).replace(b"\x7f", b"\x3f").replace(b"\xff", b"\xbf"))
