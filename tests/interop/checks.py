"""A check is a sentence and the code that could prove it wrong."""

import contextlib
import sys
import traceback


class NotAsExpected(AssertionError):
    pass


def expect(condition, message):
    if not condition:
        raise NotAsExpected(message)


def expect_equal(got, wanted, what):
    if got != wanted:
        raise NotAsExpected(f"{what}: {got!r} instead of {wanted!r}")


class LeftOut(Exception):
    """Not wrong and not shown to be right: what would judge it is not on this machine."""


class Checks:
    def __init__(self, verbose=False):
        self.passed, self.failed, self.not_yet, self.by_now = [], [], [], []
        self.left_out = []
        self.verbose = verbose

    @contextlib.contextmanager
    def that(self, sentence, not_yet=False):
        """Runs the block; a failure is counted and told, and the next check goes on.

        not_yet marks what is known to be missing: its failure does not fail the run, and its
        success is reported, so that the mark can be taken off.
        """
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            raise
        except LeftOut:
            self.left_out.append(sentence)
        except BaseException as problem:
            if not_yet:
                self.not_yet.append(sentence)
                return
            self.failed.append(sentence)
            print(f"FAILED  {sentence}\n        {self.reason(problem)}", flush=True)
        else:
            self.passed.append(sentence)
            if not_yet:
                self.by_now.append(sentence)
            if self.verbose:
                print(f"ok      {sentence}", flush=True)

    @staticmethod
    def reason(problem):
        if isinstance(problem, NotAsExpected):
            return str(problem).replace("\n", "\n        ")
        where = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__}: {problem} ({where.filename}:{where.lineno})"

    def add(self, others):
        for mine, theirs in ((self.passed, others.passed), (self.failed, others.failed),
                             (self.not_yet, others.not_yet), (self.by_now, others.by_now),
                             (self.left_out, others.left_out)):
            mine += theirs

    def close(self):
        for sentence in self.not_yet if self.verbose else ():
            print(f"not yet {sentence}")
        if self.left_out:
            print(f"left out for want of the other torch: {len(self.left_out)}")
        if self.not_yet or self.by_now:
            print(f"known not to work yet: {len(self.not_yet)}; marked so, and passing by now: "
                  f"{len(self.by_now)}")
        print(f"{len(self.passed)} passed, {len(self.failed)} failed")
        sys.stdout.flush()
        return 1 if self.failed else 0
