"""Runs the program under test and reads its answers."""

import dataclasses
import json
import os
import subprocess

from checks import expect, expect_equal

SEVERITIES = ("info", "warning", "error")


def exact_int(text):
    # "-0" is a float that some writers print without its point; int() would lose the sign.
    return -0.0 if text == "-0" else int(text)


@dataclasses.dataclass
class Answer:
    command: list
    code: int
    stdout: str
    stderr: str

    def __str__(self):
        return (f"{' '.join(self.command)}\nexit {self.code}\n{self.stdout[-1500:]}"
                f"\n{self.stderr[-1500:]}").strip()

    @property
    def json(self):
        try:
            return json.loads(self.stdout, parse_int=exact_int)
        except ValueError as problem:
            expect(False, f"the answer is not JSON ({problem}): {self}")

    def above_info(self):
        return [finding for finding in self.json["findings"] if finding["severity"] != "info"]

    def must_exit(self, *codes):
        expect(self.code in codes, f"exit {self.code} instead of {codes}: {self}")
        return self


def shardwright(*arguments, timeout=180, memory=None):
    command = [os.environ["SHARDWRIGHT"], *map(str, arguments)]
    limited = command
    if memory:  # by a shell: a preexec_fn would fork this process, with all of torch in it
        limited = ["sh", "-c", 'ulimit -v "$0" && exec "$@"', str(memory // 1024), *command]
    environment = dict(os.environ, NO_COLOR="1")
    try:
        run = subprocess.run(limited, stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=timeout, env=environment)
    except subprocess.TimeoutExpired:
        expect(False, f"no answer within {timeout} s: {' '.join(command)}")
    return Answer(command, run.returncode, run.stdout.decode("utf-8", "replace"),
                  run.stderr.decode("utf-8", "replace"))


def check(checkpoint, *arguments, **options):
    return shardwright("check", checkpoint, "--json", *arguments, **options)


def must_be_clean(checkpoint, *arguments):
    answer = check(checkpoint, *arguments)
    answer.must_exit(0)
    expect_equal(answer.above_info(), [], f"findings above info of {' '.join(answer.command)}")
    expect_equal(answer.json["verdict"], "clean", "verdict")


def must_be_mended(checkpoint, *arguments):
    """Nothing is left but what stays told for ever: what a repair put in place of what was lost."""
    left = {finding["rule"] for finding in check(checkpoint, *arguments).must_exit(0, 1).above_info()}
    expect(left <= {"filled-elements"}, f"findings above info of {checkpoint}: {left}")


def plan_operations(checkpoint, *arguments):
    steps = shardwright("plan", checkpoint, "--json", *arguments).must_exit(0, 1).json["steps"]
    return [{**step, "kind": step["does"]} for step in steps if step["step"] == "repair"]


def repair(checkpoint, *arguments, codes=(0,)):
    """1 among `codes`: something else stays wrong, which no repair of this can mend."""
    return shardwright("repair", checkpoint, "--json", "--yes", *arguments).must_exit(*codes).json


def must_be_proved(checkpoint, *arguments):
    answer = shardwright("verify", checkpoint, "--json", *arguments).must_exit(0)
    expect_equal(answer.json["verdict"], "proved", "verdict of verify")
