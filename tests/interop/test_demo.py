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
    with checks.that("plan, repair and verify of the demo hang together, and it is clean then"):
        plan = program.shardwright("plan", step, "--spec", spec, "--json").must_exit(0)
        expect_equal(len(plan.json["steps"]), 1, "operations")
        (scratch / "plan.json").write_text(plan.stdout)
        out = scratch / "repaired"
        program.repair(step, "--plan", scratch / "plan.json", "--out", out)
        program.must_be_proved(out, "--against", step)
        program.must_be_clean(out, "--spec", spec, "--data")
        again = program.repair(out, "--spec", spec)
        expect_equal(again["repaired"], False, "repaired")
