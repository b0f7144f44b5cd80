"""A check that stops a job: rank 0 looks, every rank hears the same."""

import sys

from ._program import ShardwrightError
from ._report import Report
from ._verbs import _path, check


class NotClean(ShardwrightError):
    """A checkpoint with findings, or one that could not be decided. `report` has them all."""

    def __init__(self, path, report):
        worst = min(report.findings, default=None,
                    key=lambda one: ("error", "warning", "info").index(one.severity))
        why = worst.cause if worst else "could not be decided"
        more = f" (and {len(report) - 1} more)" if len(report) > 1 else ""
        exit_code = 1 if report.verdict == "findings" else 2
        super().__init__("not_clean", f"{path}: {why}{more}", exit_code=exit_code)
        self.report = report


def raise_unless_clean(path, group=None, **options):
    """Checks `path` and raises NotClean if the verdict is not "clean"; returns the report.

    Where torch.distributed is initialised every rank of `group` must call it, after its part of the
    save: the first rank checks when all are there, and all of them return or raise. `options` are those of `check`. ShardwrightError: it does not open.
    """
    outcome = [None]
    distributed = _distributed()
    if distributed is not None:
        distributed.barrier(group)  # other ranks may still write files of their own
    if distributed is None or distributed.get_rank(group) == 0:
        try:
            outcome = [("answer", check(path, **options).answer)]
        except ShardwrightError as error:
            outcome = [("error", (error.code, error.message, error.file, error.offset, error.advice,
                                  error.exit_code))]
    if distributed is not None:
        first = distributed.get_global_rank(group, 0) if group is not None else 0
        distributed.broadcast_object_list(outcome, src=first, group=group)
    kind, content = outcome[0]
    if kind == "error":
        raise ShardwrightError(*content)
    report = Report(content)
    if not report:
        raise NotClean(_path(path), report)
    return report


def _distributed():
    """torch.distributed where this process belongs to an initialised group; torch is not imported."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed
