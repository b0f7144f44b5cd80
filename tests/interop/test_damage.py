"""Any file can be wrong: a clear answer that says where, never a crash, a hang or a command run.

Memory is held to 4 GiB here, so that a length that is believed ends the process.
"""

import argparse
import collections
import datetime
import decimal
import io
import json
import os
import pathlib
import random
import shutil

import numpy
import torch
import torch.distributed.checkpoint as dcp

import damage
import program
from checks import expect, expect_equal
from test_fixtures import DATA

TIMEOUT = 20
ANSWERS, NOTICED, NO_SUCH_TENSOR = (0, 1, 2, 4), (1, 2, 4), (3,)


def limited(*arguments):
    return program.shardwright(*arguments, timeout=TIMEOUT, memory=4 << 30)


def must_answer(answer, codes):
    expect(answer.code >= 0 and answer.code < 128, f"it crashed: {answer}")
    answer.must_exit(*codes)
    told = answer.json
    if answer.code in (2, 4) and "error" in told:
        expect(told["error"]["message"].strip(), f"an error without a message: {answer}")
    return told


def places(told):
    """Everything that says where: the error, or the findings above info."""
    if "error" in told:
        return [told["error"]]
    return [finding for finding in told.get("findings", []) if finding["severity"] != "info"]


def must_name(answer, codes, file, offset=False):
    told = must_answer(answer, codes)
    if answer.code == 0:
        return
    named = [place for place in places(told) if file in json.dumps(place)]
    expect(named, f"{file} is not named: {answer}")
    if offset and "error" in told:
        expect(isinstance(told["error"].get("offset"), int), f"no offset: {answer}")


def copy_of(case, scratch, number):
    directory = scratch / f"copy_{number}"
    shutil.copytree(DATA / case / "ckpt", directory)
    return directory


def metadata(checks, scratch, case):
    marker = scratch / "was_run"
    fqn = next(iter(json.loads((DATA / case / "spec.json").read_text())))
    for number, (sentence, change, noticed, told) in enumerate(damage.metadata_damages(marker)):
        checkpoint = copy_of(case, scratch, f"m{number}")
        change(checkpoint / ".metadata")
        codes = NOTICED if noticed else ANSWERS
        with checks.that(f"{case}: a .metadata {sentence} gets an answer that says where"):
            must_name(limited("check", checkpoint, "--json"), codes,
                      "" if told == "any" else ".metadata", told == "offset")
            expect(not marker.exists(), "the pickle's command was run")
        with checks.that(f"{case}: a .metadata {sentence} lets no verb crash"):
            for verb in (("info", checkpoint), ("ls", checkpoint), ("show", checkpoint, fqn),
                         ("show", checkpoint, fqn, "--values", "--limit", "0"),
                         ("check", checkpoint, "--data"), ("map", checkpoint, fqn)):
                must_answer(limited(*verb, "--json"), ANSWERS + NO_SUCH_TENSOR)
            expect(not marker.exists(), "the pickle's command was run")
        shutil.rmtree(checkpoint)


def unsafe(checks, scratch, case):
    marker = scratch / "was_run_too"
    for number, call in enumerate((damage.call_inside, damage.call_as_root,
                                   damage.old_style_call)):
        checkpoint = copy_of(case, scratch, f"u{number}")
        call(checkpoint / ".metadata", marker)
        with checks.that(f"{case}: a pickle that would run a command is unsafe-pickle "
                         f"({call.__name__})"):
            answer = limited("check", checkpoint, "--json")
            expect("unsafe-pickle" in answer.stdout, f"not named: {answer}")
            expect("system" in answer.stdout, f"the callable is not told: {answer}")
            expect(not marker.exists(), "the pickle's command was run")


class RunsSomething:
    """What an attacker would put among the optimizer's states."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


class OurOwn:
    """A program's own class: its checkpoint is healthy."""


def entries_of_programs():
    return {"numpy": numpy.random.RandomState(3).get_state(), "python": random.getstate(),
            "generator": numpy.random.default_rng(3), "args": argparse.Namespace(lr=0.1),
            "when": datetime.datetime(2026, 1, 2), "ordered": collections.OrderedDict(a=1),
            "counts": collections.defaultdict(int), "stream": io.BytesIO(b"raw"),
            "size": torch.Size([1, 2]), "dtype": torch.bfloat16, "path": pathlib.Path("a"),
            "decimal": decimal.Decimal("1.5"), "set": {1, 2}, "own": OurOwn(),
            "cpu": torch.get_rng_state(), "optimizer": {"state": {0: torch.ones(3)}, "lr": 1e-3}}


def unsafe_entries(checks, scratch):
    marker = scratch / "was_run_as_well"
    states = {"healthy": entries_of_programs(),
              "hostile": {"w": torch.ones(4), "sampler": RunsSomething(f"touch {marker}")}}
    for name, state in states.items():
        dcp.save(state, checkpoint_id=str(scratch / name), no_dist=True)
    marker.unlink(missing_ok=True)  # a save copies what it saves by calling it
    for depth in ("metadata", "headers", "data"):
        with checks.that(f"entries that programs leave raise nothing above info at {depth}"):
            program.must_be_clean(scratch / "healthy", "--depth", depth)
        with checks.that(f"an entry that would run a command is told at {depth}, and not run"):
            answer = limited("check", scratch / "hostile", "--json", "--depth", depth)
            told = [f for f in answer.json["findings"] if f["rule"] == "unsafe-pickle"]
            expect(not marker.exists(), "the pickle's command was run")
            if depth == "metadata":
                expect_equal(told, [], "at metadata no entry is opened")
                continue
            expect_equal([(f["severity"], f["subjects"]) for f in told], [("error", ["sampler"])],
                         "findings")
            expect("system" in told[0]["cause"], told[0]["cause"])
            expect_equal(told[0]["evidence"]["file"], "__0_0.distcp", "file")
            expect(told[0]["evidence"]["offset"] > 0, "offset")
    with checks.that("torch itself runs what that entry asks for"):
        state = {"w": torch.zeros(4), "sampler": None}
        dcp.load(state, checkpoint_id=str(scratch / "hostile"), no_dist=True)
        expect(marker.exists(), "torch does not: the entry is not as hostile as it says")


def data_files(checks, scratch, case):
    largest = max((DATA / case / "ckpt").glob("*.distcp"), key=lambda path: path.stat().st_size)
    for number, (sentence, change, depth) in enumerate(damage.data_damages()):
        checkpoint = copy_of(case, scratch, f"d{number}")
        change(checkpoint / largest.name)
        with checks.that(f"{case}: a data file {sentence} gets an answer that names it"):
            if depth == "metadata":
                must_name(limited("check", checkpoint, "--json", "--depth", "metadata"), NOTICED,
                          largest.name)
            for extra in ((), ("--data",)):
                must_name(limited("check", checkpoint, "--json", *extra),
                          ANSWERS if depth == "maybe" else NOTICED, largest.name)
        shutil.rmtree(checkpoint)
    with checks.that(f"{case}: a flipped bit in a tensor's bytes is found by --data"):
        checkpoint = copy_of(case, scratch, "payload")
        damage.flip_payload(checkpoint / largest.name)
        must_name(limited("check", checkpoint, "--json", "--data"), (1,), largest.name)
        shutil.rmtree(checkpoint)


def sharded_safetensors(checks, scratch, case):
    name = sorted((DATA / case / "ckpt").glob("*.safetensors"))[0].name
    for number, (sentence, change) in enumerate(damage.header_damages()):
        checkpoint = copy_of(case, scratch, f"s{number}")
        change(checkpoint / name)
        with checks.that(f"{case}: a shard {sentence} gets an answer that names it"):
            must_name(limited("check", checkpoint, "--json", "--data"), NOTICED, name)
        shutil.rmtree(checkpoint)


def no_checkpoint(checks, scratch):
    empty, missing = scratch / "empty", scratch / "missing"
    empty.mkdir()
    for sentence, path in (("an empty directory", empty), ("a path that is not there", missing),
                           ("a text file", pathlib.Path(__file__)), ("a device", "/dev/null")):
        with checks.that(f"{sentence} is told to be no checkpoint"):
            must_name(limited("check", path, "--json"), (2, 4), pathlib.Path(path).name)
    with checks.that("a tensor that is not there is told"):
        case = DATA / "torch-2.14" / "healthy_grid" / "ckpt"
        expect("no.such.tensor" in limited("show", case, "no.such.tensor", "--json").must_exit(
            1).stdout, "it is not named")


def run(checks, other, scratch):
    for case in ("torch-2.6/healthy_grid", "torch-2.14/healthy_two_threads"):
        metadata(checks, scratch, case)
    unsafe(checks, scratch, "torch-2.14/healthy_grid")
    unsafe_entries(checks, scratch)
    data_files(checks, scratch, "torch-2.6/healthy_grid")
    sharded_safetensors(checks, scratch, "torch-2.14/healthy_hf_sharded")
    no_checkpoint(checks, scratch)
