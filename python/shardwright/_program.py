"""Runs the program and reads its JSON."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union
    StrPath = Union[str, os.PathLike[str]]
    Heard = Union[Callable[["Progress"], object], Any]  # or a bar of tqdm

# Exit codes of `shardwright` with an answer: clean, findings, undecided. Others are errors.
_ANSWERS = (0, 1, 2)
# Exit codes by error code; 2 for all others.
_EXITS = {"usage": 3, "not_found": 1, "system_refused": 4}


class ShardwrightError(Exception):
    """What the program could not do. `code` never changes: "usage", "not_found", "system_refused",
    "damaged", "unsupported", "cancelled"."""

    def __init__(self, code: str, message: str, file: Optional[str] = None,
                 offset: Optional[int] = None, advice: str = "",
                 exit_code: Optional[int] = None) -> None:
        super().__init__(message)
        self.code, self.message, self.file, self.offset = code, message, file, offset
        self.advice = advice
        self.exit_code = _EXITS.get(code, 2) if exit_code is None else exit_code

    def __reduce__(self):
        made_of = (self.code, self.message, self.file, self.offset, self.advice, self.exit_code)
        return type(self), made_of, self.__dict__

    def __str__(self) -> str:
        where = "" if self.file is None else f"{self.file}: "
        hint = f"\nhint: {self.advice}" if self.advice else ""
        return where + self.message + hint


class Cancelled(ShardwrightError):
    """The run was stopped; its advice says how to go on with what is finished."""


def program() -> str:
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


def _script_folders() -> Iterator[str]:
    """Where pip puts programs: of this Python, of the user, of `pip install --target`."""
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", f"{os.name}_user")
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")


def run(verb: str, *words: StrPath, progress: Heard = None) -> Dict[str, Any]:
    """The answer of `shardwright VERB WORDS --json`, as a dict; raises ShardwrightError.

    `progress` hears how far the run is: a function that is called with a Progress, at most ten
    times a second and in a thread of its own, or a bar of tqdm. Ctrl-C, or any other exception,
    stops the program; so does the end of this process.
    """
    running = Running(verb, words, progress)
    try:
        running.wait()
    except BaseException as error:
        running.stop(error)
        raise
    return running.answer()


class Running:
    """A run of the program. Whoever begins it waits for it or stops it."""

    def __init__(self, verb, words, progress=None):
        command, environment = _command(verb, words, progress is not None)
        if progress is not None and not callable(progress):
            progress = _drawing(progress)
        self._said, self._failures, self._out = [], [], []
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment, start_new_session=True)  # Ctrl-C is passed on by stop(), once
        except OSError as error:
            raise ShardwrightError(
                "system_refused", f"cannot start {command[0]}: {error.strerror or error}",
                exit_code=4, advice="set SHARDWRIGHT to the program, or pip install the wheel"
            ) from error
        said = self._process.stderr, self._said, progress, self._failures
        self._threads = [
            threading.Thread(target=_collect, args=(self._process.stdout, self._out), daemon=True),
            threading.Thread(target=_hear, args=said, daemon=True)]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self._process.kill()
            raise

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Whether it has ended, `seconds` from now at the latest."""
        reader = self._threads[0]
        reader.join(seconds)
        if reader.is_alive():
            return False
        self._process.wait()
        return True

    def stop(self, why):
        """Waits until the program has kept what is finished. Ctrl-C ends that wait; without Ctrl-C
        it ends after 30 s."""
        is_typed = isinstance(why, KeyboardInterrupt)
        self._process.send_signal(signal.SIGINT if is_typed else signal.SIGTERM)
        try:
            if not self.wait(None if is_typed else 30):
                self._kill()
        except BaseException:
            self._kill()
            raise

    def _kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def answer(self) -> Dict[str, Any]:
        # What the program has started may hold its stderr longer: a shared connection of ssh.
        self._threads[1].join(timeout=5)
        if self._failures:
            raise self._failures[0]
        return _answer(self._process.returncode, self._out[0], "".join(self._said))


def _command(verb, words, is_heard):
    """The command and its environment. Passwords of URLs go into the environment, because every user
    of the machine can read the command."""
    secrets = []
    command = [program(), verb, *(_shown(word, secrets) for word in words), "--json"]
    environment = {
        **os.environ, "NO_COLOR": "1",
        # A rank of a job calls it for itself alone: it must not wait for the other ranks.
        "SHARDWRIGHT_PROCESSES": "alone",
        # With this process the program ends too.
        "SHARDWRIGHT_PARENT": str(os.getpid())}
    if is_heard:
        environment["SHARDWRIGHT_PROGRESS"] = "json"
    else:
        command.append("--quiet")
    if secrets:
        environment["SHARDWRIGHT_URLS"] = "\n".join(secrets)
    return command, environment


def _shown(word, secrets):
    """A word of the command without the secrets that it may have."""
    secret = getattr(word, "_secret", None)  # of a Checkpoint
    if secret is not None:
        secrets.append(secret)
    text = os.fsdecode(word)
    if not re.match(r"https?://[^/]*@|https?://.*\?", text, re.IGNORECASE):
        return text
    from ._library import public_path
    try:
        text, secret = public_path(text)
    except (OSError, ShardwrightError):  # without the library only the program is there
        return text
    if secret is not None:
        secrets.append(secret)
    return text


if TYPE_CHECKING:
    class _Progress(NamedTuple):
        phase: str
        done: int
        total: int
        unit: str
else:
    _Progress = collections.namedtuple("_Progress", ["phase", "done", "total", "unit"])


class Progress(_Progress):
    """`done` of `total` in this phase, in bytes or items (`unit`); `total` is 0 while unknown."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.phase}: {self.done} of {self.total} {self.unit}"


def _collect(pipe, out):
    with pipe:
        out.append(pipe.read())


def _hear(pipe, said, progress, failures):
    """Reads to the end, whatever becomes of `progress`: a full pipe would stop the program."""
    with pipe:
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


def option_words(options: Mapping[str, object]) -> List[StrPath]:
    """{"shard_size": "5G", "in_place": True} as ["--shard-size", "5G", "--in-place"]."""
    words: List[StrPath] = []
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
                words += [option, _word(one)]
        else:
            words += [option, _word(value)]
    return words


def _word(value):
    return value if hasattr(value, "__fspath__") else str(value)
