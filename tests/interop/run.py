"""Runs the interop tests: one process with one torch, and one child with the other."""

import argparse
import importlib
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "assets")]

import checks  # noqa: E402
import judge  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--other-torch", help="the Python that has torch 2.6")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()

    results = checks.Checks(arguments.verbose)
    other = (judge.OtherTorch(arguments.other_torch) if arguments.other_torch
             else judge.NoOtherTorch())
    print(f"judged by torch {judge.version()} and {other.version}", flush=True)
    for path in sorted(HERE.glob("test_*.py")):
        if arguments.names and not any(name in path.stem for name in arguments.names):
            continue
        with tempfile.TemporaryDirectory(prefix="shardwright-interop-") as scratch:
            module = importlib.import_module(path.stem)
            with results.that(f"{path.stem} runs to its end"):
                module.run(results, other, pathlib.Path(scratch))
    other.close()
    return results.close()


if __name__ == "__main__":
    sys.exit(main())
