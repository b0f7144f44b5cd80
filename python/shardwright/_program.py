"""Runs the program and reads its JSON."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import threading

# Exit codes of `shardwright` with an answer: clean, findings, undecided. Others are errors.
_ANSWERS = (0, 1, 2)
# Exit codes by error code; 2 for all others.
_EXITS = {"usage": 3, "not_found": 1, "system_refused": 4}


class ShardwrightError(Exception):
    """What the program could not do. `code` never changes: "usage", "not_found", "system_refused",
    "damaged", "unsupported", "cancelled"."""

    def __init__(self, code, message, file=None, offset=None, advice="", exit_code=None):
        super().__init__(message)
        self.code, self.message, self.file, self.offset = code, message, file, offset
        self.advice = advice
        self.exit_code = _EXITS.get(code, 2) if exit_code is None else exit_code

    def __str__(self):
        where = "" if self.file is None else f"{self.file}: "
        hint = f"\nhint: {self.advice}" if self.advice else ""
        return where + self.message + hint


class Cancelled(ShardwrightError):
    """The run was stopped; its advice says how to go on with what is finished."""


def program():
    """The path of the program: $SHARDWRIGHT, the one that pip installed, or the one on PATH."""
    said = os.environ.get("SHARDWRIGHT")
    if said:
        return said
    for folder in _script_folders():
        own = os.path.join(folder, "shardwright")
        if os.access(own, os.X_OK):
            return own
    found = shutil.which("shardwright")
    if found is None:
        raise ShardwrightError("usage", "there is no shardwright on PATH", exit_code=3,
                               advice="pip install the wheel, or set SHARDWRIGHT to the program")
    return found


def _script_folders():
    """Where pip puts programs: of this Python, of the user, of `pip install --target`."""
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", f"{os.name}_user")
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")


def _environment():
    # A rank of a job calls it for itself alone: it must not wait for the other ranks.
    return {**os.environ, "SHARDWRIGHT_PROCESSES": "alone", "NO_COLOR": "1"}


def run(verb, *words, progress=None):
    """The answer of `shardwright VERB WORDS --json`, as a dict; raises ShardwrightError.

    `progress` hears how far the run is: a function that is called with a Progress, at most ten
    times a second and in a thread of its own, or a bar of tqdm.
    """
    command = [program(), verb, *map(os.fspath, words), "--json"]
    environment = _environment()
    if progress is None:
        command.append("--quiet")
    else:
        environment["SHARDWRIGHT_PROGRESS"] = "json"
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment,
                               start_new_session=True)  # Ctrl-C is passed on below, once
    if progress is not None and not callable(progress):
        progress = _drawing(progress)
    said, failures = [], []
    reader = threading.Thread(target=_hear, args=(process.stderr, said, progress, failures),
                              daemon=True)
    reader.start()
    try:
        out = process.stdout.read()
        code = process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
        process.wait()
        raise
    finally:
        reader.join(timeout=5)
        process.stdout.close()
        process.stderr.close()
    if failures:
        raise failures[0]
    return _answer(code, out, "".join(said))


class Progress(collections.namedtuple("Progress", ["phase", "done", "total", "unit"])):
    """`done` of `total` in this phase, in bytes or items (`unit`); `total` is 0 while unknown."""

    __slots__ = ()

    def __str__(self):
        return f"{self.phase}: {self.done} of {self.total} {self.unit}"


def _hear(pipe, said, progress, failures):
    """Reads to the end, whatever becomes of `progress`: a full pipe would stop the program."""
    for line in iter(pipe.readline, b""):
        text = line.decode(errors="replace")
        if not text.startswith('{"progress": '):
            said.append(text)
        elif progress is not None and not failures:
            try:
                progress(Progress(**json.loads(text)["progress"]))
            except Exception as failure:  # is raised where the run was called
                failures.append(failure)


def _drawing(bar):
    """Shows progress on a bar of tqdm, which begins from scratch with each phase."""
    drawn = []

    def draw(progress):
        if drawn != [progress.phase]:
            drawn[:] = [progress.phase]
            bar.set_description(progress.phase, refresh=False)
            bar.unit, bar.unit_scale = ("B", True) if progress.unit == "bytes" else ("it", False)
            bar.reset()
        bar.total = progress.total or None
        bar.update(progress.done - bar.n)

    return draw


def _answer(code, out, said):
    try:
        answer = json.loads(out.decode(errors="replace"))
    except ValueError:
        raise ShardwrightError("system_refused", f"the program ended with {code} and no answer: "
                               + (said.strip() or "it said nothing"), exit_code=code) from None
    if "error" in answer:
        error = answer["error"]
        kind = Cancelled if error.get("code") == "cancelled" else ShardwrightError
        raise kind(error.get("code", "damaged"), error["message"], error.get("file"),
                   error.get("offset"), error.get("advice", ""), code)
    if code not in _ANSWERS:
        raise ShardwrightError("system_refused", f"the program ended with {code}", exit_code=code)
    answer["exit_code"] = code
    return answer


def option_words(options):
    """{"shard_size": "5G", "in_place": True} as ["--shard-size", "5G", "--in-place"]."""
    words = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError(f"{name} is not the name of an option")
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, dict):
            words += [option, ",".join(f"{axis}={size}" for axis, size in value.items())]
        elif isinstance(value, (list, tuple)):
            for one in value:
                words += [option, str(one)]
        else:
            words += [option, os.fspath(value) if hasattr(value, "__fspath__") else str(value)]
    return words
