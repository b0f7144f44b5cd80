"""What torch's HuggingFaceStorageWriter leaves, sharded and consolidated, healthy and broken by S1.

Random layouts of tensors.py's kinds, written one file per rank by torch's own planner; the
consolidated ones by torch's own consolidation of those files. S1 is mended by new offsets in the
headers where there are shards, by moving bytes where there are none, and torch reads the truth.
"""

import json
import pathlib
import random

import torch
from safetensors import safe_open
from torch.distributed.checkpoint import HuggingFaceStorageWriter
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

import broken
import judge
import layouts
import program
from checks import expect, expect_equal
from fake_ranks import write_checkpoint
from make_cases import describe_case
from test_fixtures import Case, must_equal_truth, must_show
from test_generated import SEED, moved_axis

# What the reader of 2.15 gives another dtype, or has no shards of.
UNREAD = (torch.bool, torch.float64, torch.int16)
SHARDED = (layouts.fsdp, layouts.hsdp, layouts.fsdp_tp, layouts.experts)


def layout_for_hf(make, chance):
    layout = make(chance)
    layout.plain = {}
    layout.entries = [entry for entry in layout.entries
                      if entry.truth.dtype not in UNREAD and entry.truth.numel()]
    return layout


def file_indices(layout, files):
    return {entry.fqn: 1 + i % files for i, entry in enumerate(layout.entries)}


def made(directory, make, number):
    """A case of shards; now and then each rank has two files."""
    chance = random.Random(f"{SEED}/hf/{number}/{make.__name__}")
    layout = layout_for_hf(make, chance)
    directory = directory / f"hf_{make.__name__}_{number}"
    directory.mkdir(parents=True)
    files = chance.choice((1, 1, 2))
    writer = HuggingFaceStorageWriter(str(directory / "ckpt"), save_distributed=True,
                                      fqn_to_index_mapping=file_indices(layout, files))
    write_checkpoint(directory / "ckpt", layout.world, layout.state_dict_at, writer=writer)
    describe_case(directory, layout, f"{SEED}/{number}")
    case = Case(directory)
    case.name = f"{directory.name} ({layout.world} ranks, {files} files each)"
    return case


def consolidated(case, files):
    """The same tensors in whole, as torch consolidates them; 0-d ones come out as zeros there."""
    directory = case.directory.with_name(case.directory.name + "_consolidated")
    (directory / "ckpt").mkdir(parents=True)
    names = {fqn: 1 + i % files for i, fqn in enumerate(case.spec)}
    consolidate_safetensors_files(str(case.checkpoint), str(directory / "ckpt"),
                                  fqn_to_index_mapping=names)
    for name in ("spec.json", "case.json", "truth.safetensors"):
        (directory / name).write_bytes((case.directory / name).read_bytes())
    whole = Case(directory)
    whole.name = f"{case.name}, consolidated into {files}"
    return whole


def healthy(checks, case):
    for depth in ("metadata", "headers", "data"):
        with checks.that(f"{case.name} raises nothing above info at depth {depth}"):
            program.must_be_clean(case.checkpoint, "--depth", depth)
    with checks.that(f"{case.name} raises nothing above info against its spec"):
        program.must_be_clean(case.checkpoint, "--spec", case.spec_path, "--data")
    with checks.that(f"{case.name} reads back as it was written"):
        must_show(case.checkpoint, case.truth())


def must_open_everywhere(checkpoint):
    """safetensors' own reader takes every file: no hole, no overlap, everything aligned."""
    for path in sorted(pathlib.Path(checkpoint).glob("*.safetensors")):
        with safe_open(path, "pt") as opened:
            for fqn in opened.keys():
                expect(opened.get_tensor(fqn) is not None, f"{path.name}: {fqn}")
        length = int.from_bytes(path.open("rb").read(8), "little")
        expect_equal(length % 8, 0, f"{path.name}: padding of the header")


def mended(checks, case, other):
    spec, out = ("--spec", case.spec_path), case.directory / "repaired"
    with checks.that(f"{case.name}: the moved axis is the one finding, for all its tensors"):
        above = program.check(case.checkpoint, *spec).must_exit(1).above_info()
        expect_equal([finding["rule"] for finding in above], ["placement-axis-moved"], "rules")
        expect_equal(sorted(above[0]["subjects"]), sorted(case.about["subjects"]), "subjects")
    with checks.that(f"{case.name}: the experts alone name it too"):
        above = program.check(case.checkpoint).must_exit(1).above_info()
        expect_equal([finding["rule"] for finding in above], ["placement-axis-moved"], "rules")
    with checks.that(f"{case.name}: the repaired equals the truth, file by file"):
        before = judge.tree_hash(case.checkpoint)
        answer = program.repair(case.checkpoint, *spec, "--out", out)
        certificate = json.loads(pathlib.Path(answer["certificate"]).read_text())
        expect_equal(certificate["lossless"], True, "lossless")
        for fqn in case.about["subjects"]:
            entry = certificate["tensors"][fqn]
            expect_equal(entry["lost"], 0, f"what {fqn} lost")
        must_open_everywhere(out)
        must_equal_truth(case, out, other)
        expect_equal(judge.tree_hash(case.checkpoint), before, "the source")
    with checks.that(f"{case.name}: the repaired is proved, clean, and needs nothing more"):
        program.must_be_proved(out, "--against", case.checkpoint)
        program.must_be_clean(out, *spec, "--data")
        expect_equal(program.plan_operations(out, *spec), [], "operations")
    with checks.that(f"{case.name}: in place is refused, for bytes move"):
        refused = program.shardwright("repair", case.checkpoint, *spec, "--in-place", "--yes")
        refused.must_exit(2, 3)
        expect("new directory" in refused.stderr, f"says {refused.stderr}")


def run(checks, other, scratch):
    for number in range(8):
        healthy(checks, made(scratch, SHARDED[number % len(SHARDED)], number))
    for number in range(6):
        case = made(scratch, broken.moved_axis, number)
        moved_axis(checks, case, other)
        if number < 4:
            mended(checks, consolidated(case, 1 + number % 2), other)
