"""The verbs of the program as functions. Their keyword arguments are its options:
`shard_size="5G"` is `--shard-size 5G`."""

from ._hashes import Hashes
from ._program import option_words, run
from ._report import Report


def _path(checkpoint):
    return getattr(checkpoint, "path", checkpoint)


def check(checkpoint, *, progress=None, **options):
    """What is wrong, as a Report."""
    return Report(run("check", _path(checkpoint), *option_words(options), progress=progress))


def stats(checkpoint, *names, progress=None, **options):
    """Columns: tensor, elements, nan, inf, zero, min, max, mean, std and more."""
    answer = run("stats", _path(checkpoint), *names, *option_words(options), progress=progress)
    rows = answer["tensors"]
    keys = []
    for row in rows.values():
        keys += [key for key in row if key not in keys]
    return {"tensor": list(rows), **{key: [row.get(key) for row in rows.values()] for key in keys}}


def hash(checkpoint, *names, progress=None, **options):  # noqa: A001
    """Name to hash, equal for the same elements in any chunks and format; `.total` is one of all."""
    answer = run("hash", _path(checkpoint), *names, *option_words(options), progress=progress)
    return Hashes({name: row.get("hash") for name, row in answer["tensors"].items()},
                  total=answer.get("total"))


def diff(first, second, *, progress=None, **options):
    """How two checkpoints differ; `data=True` compares every element."""
    return run("diff", _path(first), _path(second), *option_words(options), progress=progress)


def repair(checkpoint, *, progress=None, **options):
    """Repairs into a new folder (`out=`), with a certificate. Returns the answer; `output` in it is
    the folder, or the checkpoint itself where there was nothing to repair."""
    return run("repair", _path(checkpoint), *option_words(options), "--yes", progress=progress)


def reshard(checkpoint, mesh, *, progress=None, **options):
    """Cuts every tensor anew: `mesh={"dp": 8, "tp": 2}`."""
    return run("reshard", _path(checkpoint), *option_words({"mesh": mesh, **options}), "--yes",
               progress=progress)


def convert(checkpoint, to, *, progress=None, **options):
    """The same tensors as "dcp", "safetensors" or "torch"."""
    return run("convert", _path(checkpoint), *option_words({"to": to, **options}), "--yes",
               progress=progress)


def verify(checkpoint, *, progress=None, **options):
    """Proves a repaired checkpoint against its certificate."""
    return run("verify", _path(checkpoint), *option_words(options), progress=progress)
