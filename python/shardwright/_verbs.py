"""The verbs of the program as functions. Their keyword arguments are its options:
`shard_size="5G"` is `--shard-size 5G`."""

from __future__ import annotations

from ._hashes import Hashes
from ._program import Running, option_words, run
from ._report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

    from ._program import Heard, StrPath
    Answer = Dict[str, Any]
    Columns = Dict[str, List[Any]]


def _with_expected(checkpoint, options):
    """With what sw.open() was told to expect. An option that is None leaves it out."""
    return {**getattr(checkpoint, "_expected", {}), **options}


def check(checkpoint: StrPath, *, progress: Heard = None, **options: Any) -> Report:
    """What is wrong, as a Report. Of a Checkpoint, `spec`, `against` and `mesh` are those of open()."""
    words = option_words(_with_expected(checkpoint, options))
    return Report(run("check", checkpoint, *words, progress=progress))


def begin_check(checkpoint, *, progress=None, **options):
    words = option_words(_with_expected(checkpoint, options))
    return Running("check", [checkpoint, *words], progress)


def stats(checkpoint: StrPath, *names: str, progress: Heard = None, **options: Any) -> Columns:
    """Columns: tensor, elements, nan, inf, zero, min, max, mean, std and more. `min` and `max` are
    floats, and None of complex elements; `run("stats", ...)` has them exactly."""
    answer = run("stats", checkpoint, *names, *option_words(options), progress=progress)
    rows = answer["tensors"]
    keys: List[str] = []
    for row in rows.values():
        keys += [key for key in row if key not in keys]
    columns = {key: [row.get(key) for row in rows.values()] for key in keys}
    for key in {"min", "max"} & set(columns):
        columns[key] = [_as_float(value) for value in columns[key]]
    return {"tensor": list(rows), **columns}


def _as_float(value):
    """Of a number or of "NaN", "Infinity", "-Infinity"; None of anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def hash(checkpoint: StrPath, *names: str, progress: Heard = None,  # noqa: A001
         **options: Any) -> Hashes:
    """Name to hash, equal for the same elements in any chunks and format; `.total` is one of all."""
    answer = run("hash", checkpoint, *names, *option_words(options), progress=progress)
    return Hashes({name: row.get("hash") for name, row in answer["tensors"].items()},
                  total=answer.get("total"))


def diff(first: StrPath, second: StrPath, *, progress: Heard = None, **options: Any) -> Answer:
    """How two checkpoints differ; `data=True` compares every element."""
    return run("diff", first, second, *option_words(options), progress=progress)


def repair(checkpoint: StrPath, *, progress: Heard = None, **options: Any) -> Answer:
    """Repairs into a new folder (`out=`), with a certificate. Returns the answer; `output` in it is
    the folder, or the checkpoint itself where there was nothing to repair. Of a Checkpoint, `spec`,
    `against` and `mesh` are those of open()."""
    words = option_words(_with_expected(checkpoint, options))
    return run("repair", checkpoint, *words, "--yes", progress=progress)


def reshard(checkpoint: StrPath, mesh: Union[str, Mapping[str, int]], *, progress: Heard = None,
            **options: Any) -> Answer:
    """Cuts every tensor again: `mesh={"dp": 8, "tp": 2}`."""
    return run("reshard", checkpoint, *option_words({"mesh": mesh, **options}), "--yes",
               progress=progress)


def convert(checkpoint: StrPath, to: str, *, progress: Heard = None, **options: Any) -> Answer:
    """The same tensors as "dcp", "safetensors" or "torch"."""
    return run("convert", checkpoint, *option_words({"to": to, **options}), "--yes",
               progress=progress)


def merge(base: StrPath, *adapters: StrPath, progress: Heard = None, **options: Any) -> Answer:
    """LoRA adapters added to their base, one after the other."""
    return _combined("merge", base, adapters, progress, options)


def extract(tuned: StrPath, base: StrPath, rank: int = 16, *, progress: Heard = None,
            **options: Any) -> Answer:
    """A LoRA adapter of what `tuned` learned next to `base`."""
    return _combined("extract", tuned, (base,), progress, {"rank": rank, **options})


def average(first: StrPath, *others: StrPath, weights: Optional[Sequence[float]] = None,
            progress: Heard = None, **options: Any) -> Answer:
    """The weighted sum of checkpoints of one model: `weights=[0.5, 0.3, 0.2]`."""
    if weights is not None:
        options["weights"] = ",".join(repr(float(weight)) for weight in weights)
    return _combined("average", first, others, progress, options)


def delta(base: StrPath, result: StrPath, *, progress: Heard = None, **options: Any) -> Answer:
    """What makes `result` of `base`, exactly."""
    return _combined("delta", base, (result,), progress, options)


def apply(base: StrPath, delta: StrPath, *, progress: Heard = None, **options: Any) -> Answer:
    """The checkpoint that the delta was made for."""
    return _combined("apply", base, (delta,), progress, options)


def _combined(verb, first, others, progress, options):
    return run(verb, first, *others, *option_words(options), "--yes", progress=progress)


def verify(checkpoint: StrPath, *, progress: Heard = None, **options: Any) -> Answer:
    """Proves a repaired checkpoint against its certificate."""
    return run("verify", checkpoint, *option_words(options), progress=progress)
