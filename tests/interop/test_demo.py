"""A deep look at the demo: ten gigabytes of elements, too many for a program under ASan."""

import program
from checks import expect_equal


def rules(answer):
    return [finding["rule"] for finding in answer.json["findings"]]


def run(checks, other, scratch):
    made = scratch / "demo"
    program.shardwright("demo", made).must_exit(0)
    step, spec = made / "step_9000", made / "spec.json"
    with checks.that("a deep look at the demo finds the planted defect and nothing else"):
        answer = program.check(step, "--spec", spec, "--data").must_exit(1)
        expect_equal(rules(answer), ["placement-axis-moved"], "rules")
    with checks.that("the demo, repaired, is clean by a deep look"):
        program.repair(step, "--spec", spec, "--out", scratch / "repaired", "--yes")
        program.must_be_clean(scratch / "repaired", "--spec", spec, "--data")
