"""Random layouts with the truth next to them, healthy and broken, as a stranger would judge answers.

What must be named is what was broken, by any rule, and nothing else, with a spec; without one,
nothing that is sound. What a repair keeps equals the truth, what it masks is what no file holds any
more (of a pair of moments, what not both of them hold). A longer run:

    SHARDWRIGHT_WORLDS=2000 SHARDWRIGHT_WORLDS_SEED=7 bash tests/interop/run.sh random_worlds
"""

import json
import os
import random
import shutil

import torch

import judge
import program
import worlds
from checks import expect, expect_equal

COUNT = int(os.environ.get("SHARDWRIGHT_WORLDS", "28"))
SEED = int(os.environ.get("SHARDWRIGHT_WORLDS_SEED", "1"))


def names_above_info(answer):
    return {fqn for finding in answer.above_info() if finding["rule"] != "filled-elements"
            for fqn in finding["subjects"]}


def known_masks(world, checkpoint):
    """Of a pair of moments a row is worth keeping only where both are known."""
    known = worlds.elements_on_disk(world, checkpoint)
    pairs = {}
    for entry in world.entries:
        if entry.moment:
            pairs.setdefault(entry.parameter.fqn, []).append(entry.fqn)
    for pair in pairs.values():
        both = torch.stack([known[fqn] for fqn in pair]).all(dim=0)
        known.update({fqn: both for fqn in pair})
    return known


def must_be_named(world, checkpoint, spec):
    broken = {entry.fqn for entry in world.broken()}
    told = program.check(checkpoint, "--spec", spec).must_exit(1 if broken else 0)
    expect_equal(names_above_info(told) ^ broken, set(), "named and sound, or broken and not named")
    bare = program.check(checkpoint).must_exit(0, 1)
    expect_equal(names_above_info(bare) - broken, set(), "named without a spec, and sound")


def must_be_what_is_left(world, certificate, got, truth, known):
    for entry in world.entries:
        row = certificate["tensors"].get(entry.fqn, {"lost": 0, "lost_boxes": []})
        lost = judge.inside(row["lost_boxes"], entry.shape)
        expect_equal(int(lost.sum()), row["lost"], f"elements in the boxes of {entry.fqn}")
        expect(torch.equal(lost, ~known[entry.fqn]), f"{entry.fqn}: {int(lost.sum())} said to be "
               f"lost, {int((~known[entry.fqn]).sum())} are")
        expect(judge.same_bits(got[entry.fqn][~lost], truth[entry.fqn][~lost]),
               f"{entry.fqn} is not the truth where nothing is lost")


def examine(world, scratch):
    checkpoint, spec_path, out = scratch / "ck", scratch / "spec.json", scratch / "mended"
    scratch.mkdir()
    truth, spec = worlds.truth_of(world), world.spec()
    worlds.write(world, truth, checkpoint)
    spec_path.write_text(json.dumps(spec))
    must_be_named(world, checkpoint, spec_path)
    if not world.broken():
        return
    program.repair(checkpoint, "--spec", spec_path, "--out", out)
    certificate = json.loads((out / "certificate.json").read_text())
    must_be_what_is_left(world, certificate, judge.load_dcp(out, spec), truth,
                         known_masks(world, checkpoint))
    program.must_be_proved(out)
    after = program.check(out, "--spec", spec_path)
    expect_equal(names_above_info(after), set(), "named in what was mended")


def run(checks, _other, scratch):
    kinds = list(worlds.MAKERS)
    for number in range(COUNT):
        kind = kinds[number % len(kinds)]
        world = worlds.random_world(random.Random(f"{SEED} {number}"), kind)
        place = scratch / str(number)
        with checks.that(f"a random world, {kind}, seed {SEED} {number}, on {world.mesh}"):
            examine(world, place)
        shutil.rmtree(place, ignore_errors=True)
