"""A check that stops a job: rank 0 looks, every rank hears the same."""

from __future__ import annotations

import os
import sys

from ._program import ShardwrightError
from ._report import Report
from ._verbs import begin_check, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._program import StrPath

# Seconds between two broadcasts while rank 0 checks. NCCL ends a job whose collective takes 10
# minutes, and reading every byte takes longer.
_HEARTBEAT = 20.0


class NotClean(ShardwrightError):
    """A checkpoint with findings, or one that could not be decided. `report` has them all."""

    def __init__(self, path: StrPath, report: Report) -> None:
        worst = min(report.findings, default=None,
                    key=lambda one: ("error", "warning", "info").index(one.severity))
        why = worst.cause if worst else "could not be decided"
        more = f" (and {len(report) - 1} more)" if len(report) > 1 else ""
        exit_code = 1 if report.verdict == "findings" else 2
        self.path = os.fspath(path)
        super().__init__("not_clean", f"{self.path}: {why}{more}", exit_code=exit_code)
        self.report = report

    def __reduce__(self):
        return type(self), (self.path, self.report), self.__dict__


def raise_unless_clean(path: StrPath, group: Any = None, **options: Any) -> Report:
    """Checks `path` and raises NotClean if the verdict is not "clean"; returns the report.

    Where torch.distributed is initialised every rank of `group` must call it, after its part of the
    save: the first rank checks when all are there, and all of them return or raise. `options` are
    those of `check`. ShardwrightError: it does not open. An error of another kind is raised on the
    first rank as it is.
    """
    distributed = _distributed()
    if distributed is None:
        report = check(path, **options)
    else:
        report = Report(_answer_of_first(distributed, group, path, options))
    if not report:
        raise NotClean(path, report)
    return report


def _answer_of_first(distributed, group, path, options):
    first = distributed.get_global_rank(group, 0) if group is not None else 0

    def broadcast(outcome=None):
        box = [outcome]
        distributed.broadcast_object_list(box, src=first, group=group)
        return box[0]

    distributed.barrier(group)  # other ranks may still write files of their own
    if distributed.get_rank(group) == 0:
        return _check_and_broadcast(broadcast, path, options)
    outcome = None
    while outcome is None:
        outcome = broadcast()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _check_and_broadcast(broadcast, path, options):
    """The answer, or the error, of which the other ranks hear first."""
    running, is_heard = None, True
    try:
        running = begin_check(path, **options)
        while not running.wait(_HEARTBEAT):
            is_heard = False
            broadcast()
            is_heard = True
        answer = running.answer()
    except BaseException as error:
        try:
            if running is not None and not running.wait(0):
                running.stop(error)
        finally:
            if is_heard:  # another broadcast would only wait for a rank that is lost
                broadcast(_as_shardwright_error(error))
        raise
    broadcast(answer)
    return answer


def _as_shardwright_error(error):
    if isinstance(error, ShardwrightError):
        return error
    said = f"on the first rank: {type(error).__name__}: {error}".rstrip(": ")
    return ShardwrightError("system_refused", said)


def _distributed():
    """torch.distributed where this process belongs to an initialised group; torch is not imported."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed
