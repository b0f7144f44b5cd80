"""Opens sharded training checkpoints, says what is wrong with them, and repairs them with proof.

    import shardwright as sw

    ck = sw.open("step_9000")                  # any format that `shardwright` opens
    ck["model.norm.weight"][:8]                # numpy; only what is needed is read
    ck.check(against="step_8000").findings     # plain objects; the report shows itself in a notebook
    sw.repair("step_9000", against="step_8000", out="step_9000-repaired")

The module runs the `shardwright` program that it was installed with and reads its JSON. Elements
are read from the files directly, without a copy where they are in one piece.
"""

from __future__ import annotations

from ._checkpoint import Checkpoint, Tensor, open  # noqa: A004
from ._gate import NotClean, raise_unless_clean
from ._program import Cancelled, Progress, ShardwrightError, program, run
from ._report import Finding, Report
from ._verbs import (apply, average, check, convert, delta, diff, extract, hash, merge,  # noqa: A004
                     repair, reshard, stats, verify)
from ._version import __version__

__all__ = ["Cancelled", "Checkpoint", "Finding", "NotClean", "Progress", "Report",
           "ShardwrightError", "Tensor", "apply", "average", "check", "convert", "delta", "diff",
           "extract", "hash", "hash_of", "merge", "open", "program", "raise_unless_clean",
           "repair", "reshard", "run", "spec_of", "stats", "verify", "__version__"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    from torch.nn import Module

    from ._hashes import Hashes
    from ._program import StrPath


def spec_of(model: Module, path: Optional[StrPath] = None, **options: Any) -> Dict[str, Any]:
    """What the model expects of its checkpoint, for `check(spec=...)`. Needs torch.

    Call it on every rank after the model is parallelised; rank 0 writes `path`. `optimizer=`,
    `model_prefix=` and `optimizer_prefix=` are those of `shardwright._spec.export_spec`.
    """
    from . import _spec  # type: ignore[attr-defined]  # the wheel has it
    spec: Dict[str, Any] = _spec.export_spec(model, path, **options)
    return spec


def hash_of(state: Mapping[str, Any], group: Any = None) -> Hashes:
    """The hashes that `hash` gives of files, of a live state dict: sharded tensors are not gathered.

    Needs torch. All ranks call it; see `shardwright._live.hash_of`.
    """
    from . import _live
    return _live.hash_of(state, group)
