"""What tests/bench/desk.sh opens: make_desk.py FOLDER GIGABYTES. In FOLDER: a and b, of so many
gigabytes and the same, and names, a checkpoint of 250,000 small tensors."""
import json
import os
import sys

import cancel

TENSORS = 250_000
KINDS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate", "up", "down", "norm1", "norm2", "bias"]


def make_names(folder):
    os.makedirs(folder, exist_ok=True)
    header = {}
    for i in range(TENSORS):
        name = f"model.layers.{i // 250}.experts.{i % 250 // 10}.{KINDS[i % 10]}.weight"
        header[name] = {"dtype": "F32", "shape": [8, 2], "data_offsets": [64 * i, 64 * i + 64]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.write(os.urandom(64 * TENSORS))


def main():
    folder, gigabytes = sys.argv[1], float(sys.argv[2])
    for name in ("a", "b"):
        cancel.make(os.path.join(folder, name), gigabytes, 1)
    make_names(os.path.join(folder, "names"))


main()
