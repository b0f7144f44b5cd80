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
    """Cuts every tensor again: `mesh={"dp": 8, "tp": 2}`."""
    return run("reshard", _path(checkpoint), *option_words({"mesh": mesh, **options}), "--yes",
               progress=progress)


def convert(checkpoint, to, *, progress=None, **options):
    """The same tensors as "dcp", "safetensors" or "torch"."""
    return run("convert", _path(checkpoint), *option_words({"to": to, **options}), "--yes",
               progress=progress)


def merge(base, *adapters, progress=None, **options):
    """LoRA adapters added to their base, one after the other."""
    return _combined("merge", base, adapters, progress, options)


def extract(tuned, base, rank=16, *, progress=None, **options):
    """A LoRA adapter of what `tuned` learned next to `base`."""
    return _combined("extract", tuned, (base,), progress, {"rank": rank, **options})


def average(first, *others, weights=None, progress=None, **options):
    """The weighted sum of checkpoints of one model: `weights=[0.5, 0.3, 0.2]`."""
    if weights is not None:
        options["weights"] = ",".join(repr(float(weight)) for weight in weights)
    return _combined("average", first, others, progress, options)


def delta(base, result, *, progress=None, **options):
    """What makes `result` of `base`, exactly."""
    return _combined("delta", base, (result,), progress, options)


def apply(base, delta, *, progress=None, **options):
    """The checkpoint that the delta was made for."""
    return _combined("apply", base, (delta,), progress, options)


def _combined(verb, first, others, progress, options):
    return run(verb, _path(first), *map(_path, others), *option_words(options), "--yes",
               progress=progress)


def verify(checkpoint, *, progress=None, **options):
    """Proves a repaired checkpoint against its certificate."""
    return run("verify", _path(checkpoint), *option_words(options), progress=progress)
