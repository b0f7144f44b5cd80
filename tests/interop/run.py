"""Runs the interop tests: in each of --jobs processes one torch, with a child that has the other."""

import argparse
import concurrent.futures
import importlib
import multiprocessing
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "assets")]

import checks  # noqa: E402

the_other = None  # of this process


def start(other_torch):
    import judge

    global the_other
    the_other = judge.OtherTorch(other_torch) if other_torch else judge.NoOtherTorch()


def run(path, verbose):
    """All checks of one file."""
    results = checks.Checks(verbose)
    with tempfile.TemporaryDirectory(prefix="shardwright-interop-") as scratch:
        with results.that(f"{path.stem} runs to its end"):
            importlib.import_module(path.stem).run(results, the_other, pathlib.Path(scratch))
    return results


def versions():
    import judge

    return judge.version(), the_other.version


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--other-torch", help="the Python that has torch 2.6")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()

    paths = [path for path in HERE.glob("test_*.py")
             if not arguments.names or any(name in path.stem for name in arguments.names)]
    paths.sort(key=lambda path: -path.stat().st_size)  # what is long comes first
    total = checks.Checks(arguments.verbose)
    with concurrent.futures.ProcessPoolExecutor(
            max(1, min(arguments.jobs, len(paths))), multiprocessing.get_context("spawn"), start,
            (arguments.other_torch,)) as pool:
        print("checked by torch {} and {}".format(*pool.submit(versions).result()), flush=True)
        for one in [pool.submit(run, path, arguments.verbose) for path in paths]:
            total.add(one.result())
    return total.close()


if __name__ == "__main__":
    sys.exit(main())
