"""Random layouts by torch's own planner: healthy ones stay silent, those broken by S1 are mended.

100 and 40 by the newer torch, 30 and 10 by the older one, whose strided shards are other code.
"""

import json
import os
import pathlib

import judge
import make_cases
import program
from checks import expect, expect_equal
from test_fixtures import Case, must_equal_truth, must_show

SEED = os.environ.get("SHARDWRIGHT_SEED", "1")  # the same layouts every time, others when asked


def generated(scratch, count, broken=None, maker=None):
    """Cases of this process's torch, or of another one's."""
    arguments = dict(directory=str(scratch / (broken or "healthy")), count=count, seed=SEED,
                     broken=broken)
    if maker:
        arguments["directory"] += "_other"
        directories = maker.ask("generated_cases", **arguments)
    else:
        directories = judge.generated_cases(**arguments)
    cases = [Case(pathlib.Path(directory)) for directory in directories]
    for case in cases:
        case.name = (f"generated {case.directory.name} ({case.about['world']} ranks, torch "
                     f"{case.about['torch'].split('+')[0]}, seed {case.about['seed']})")
    return cases


# Layouts whose names and writers come close to what S4 and S5 E1 leave.
CLOSE = ("dense_names", "uneven_tp", "nested_strided", "hsdp", "expert_rows")


def healthy(checks, case):
    spec = ("--spec", case.spec_path)
    close = case.about["kind"] in CLOSE
    with checks.that(f"{case.name} raises nothing above info"):
        for depth in ("metadata", "headers", "data") if close else ("headers",):
            program.must_be_clean(case.checkpoint, "--depth", depth)
    with checks.that(f"{case.name} raises nothing above info against its spec"):
        for depth in ("metadata", "headers", "data") if close else ("data",):
            program.must_be_clean(case.checkpoint, *spec, "--depth", depth)
    if close:
        with checks.that(f"{case.name} raises nothing above info on the mesh that saved it"):
            mesh = ",".join(f"{name}={size}" for name, size in case.about["mesh"].items())
            program.must_be_clean(case.checkpoint, "--mesh", mesh)
    with checks.that(f"{case.name} reads back as it was written"):
        must_show(case.checkpoint, case.truth())


def moved_axis(checks, case, other):
    spec, out = ("--spec", case.spec_path), case.directory / "repaired"
    before = judge.tree_hash(case.checkpoint)
    with checks.that(f"{case.name}: the moved axis is the one finding, for all its tensors"):
        above = program.check(case.checkpoint, *spec).must_exit(1).above_info()
        expect_equal([finding["rule"] for finding in above], ["placement-axis-moved"], "rules")
        expect_equal(sorted(above[0]["subjects"]), sorted(case.about["subjects"]), "subjects")
        expect_equal(above[0]["evidence"]["factor"], case.about["factor"], "factor")
        expect_equal(sorted(above[0]["evidence"]["axes"]), case.about["axes"], "axes")
    with checks.that(f"{case.name}: without a spec no other cause is named first"):
        above = program.check(case.checkpoint).above_info()
        expect(not above or above[0]["rule"] == "placement-axis-moved",
               f"first is {above and above[0]['rule']}")
    with checks.that(f"{case.name}: the repaired equals the truth in every torch"):
        answer = program.repair(case.checkpoint, *spec, "--out", out)
        with open(answer["certificate"]) as stream:
            expect_equal(json.load(stream)["lossless"], True, "lossless")
        must_equal_truth(case, out, other)
    with checks.that(f"{case.name}: the repaired is proved, clean, and needs nothing more"):
        program.must_be_proved(out, "--against", case.checkpoint)
        program.must_be_clean(out, *spec, "--data")
        expect_equal(program.plan_operations(out, *spec), [], "operations")
    with checks.that(f"{case.name}: the source is untouched"):
        expect_equal(judge.tree_hash(case.checkpoint), before, "hashes")


def run(checks, other, scratch):
    for case in generated(scratch, 100):
        healthy(checks, case)
    for case in generated(scratch, 40, "s1"):
        moved_axis(checks, case, other)
    with checks.that("the older torch writes layouts too"):
        healthy_ones = generated(scratch, 30, maker=other)
        broken_ones = generated(scratch, 10, "s1", maker=other)
        for case in healthy_ones:
            healthy(checks, case)
        for case in broken_ones:
            moved_axis(checks, case, other)
