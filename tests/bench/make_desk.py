"""What tests/bench/desk.sh opens: make_desk.py FOLDER GIGABYTES. In FOLDER: a and b, of so many
gigabytes and the same, and names, a checkpoint of 250,000 small tensors."""
import os
import sys

import cancel


def main():
    folder, gigabytes = sys.argv[1], float(sys.argv[2])
    for name in ("a", "b"):
        cancel.make(os.path.join(folder, name), gigabytes, 1)
    cancel.make_names(os.path.join(folder, "names"))


main()
