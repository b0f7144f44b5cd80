"""The reports where a checkpoint says enough of itself: no spec, or only the mesh that saved it.

Torch judges what comes out: the truth outside the mask, and the mask no larger than what survivors.py
says that nobody can know.
"""

import program
import survivors
from checks import expect_equal
from test_fixtures import cases
from test_generated import generated
from test_losses import LOST, must_name_first, repaired


def judged(checks, case, scratch, other, arguments, rules, restored=False):
    told = " ".join(map(str, arguments)) or "nothing"
    label = f"{case.name}, told {told}"
    kept = survivors.kept_masks(case.checkpoint, case.spec, case.truth(),
                                case.about.get("mislabelled", ()))
    with checks.that(f"{label}: {' and '.join(rules)} is named first at every depth"):
        for depth in ("metadata", "headers", "data"):
            must_name_first(case.checkpoint, (*arguments, "--depth", depth), rules)
    out = scratch / f"{case.name}_without_spec".replace(" ", "_").replace("/", "_")
    repaired(checks, case, case.checkpoint, out, kept, other, label, restored=restored,
             arguments=arguments)


def masters(checks, case, scratch, other):
    """All of it from the ranks' own files; without them survivors in their places."""
    judged(checks, case, scratch, other, (), case.about["rules"], restored=True)
    for path in sorted(case.checkpoint.glob("optimizer_rank_*.pt")):
        path.unlink()
    mesh = ",".join(f"{name}={size}" for name, size in case.about["mesh"].items())
    judged(checks, case, scratch / "bare", other, ("--mesh", mesh), case.about["rules"])


def hinted(checks, case):
    """Healthy FSDP on a mesh whose inner axis is cp looks the same."""
    with checks.that(f"{case.name}: without a mesh the writers are no more than a hint"):
        answer = program.check(case.checkpoint).must_exit(0)
        expect_equal(answer.above_info(), [], "above info")
        expect_equal([finding["severity"] for finding in answer.json["findings"]
                      if finding["rule"] == "writer-mosaic"], ["info"], "hint")


def undecided(checks, case):
    with checks.that(f"{case.name}: what would decide it is said, and nothing is planned"):
        above = program.check(case.checkpoint).must_exit(1).above_info()
        expect_equal([finding["rule"] in ("axis-dropped", "writer-mosaic") for finding in above],
                     [True] * len(above), "rules")
        for finding in above:
            expect_equal((finding["severity"], finding["remedy"], "--" in
                          finding["evidence"]["undecided"]), ("warning", None, True), "finding")
        operations = program.plan_operations(case.checkpoint)
        expect_equal([one for one in operations if one["kind"] != "rewrite-metadata"], [],
                     "operations")


def run(checks, other, scratch):
    (scratch / "bare").mkdir()
    for case in cases("s2_") + cases("s3_"):
        judged(checks, case, scratch, other, (), LOST[case.directory.name][0])
    for case in cases("s5_tp_") + cases("s5_te_tp_"):
        judged(checks, case, scratch, other, ("--mesh", "dp=2,tp=2"), ["axis-dropped"])
    for case in cases("s4_expert_axis_dropped") + cases("s4_mlite_edp2"):
        undecided(checks, case)
    for case in cases("s5_tp_"):
        hinted(checks, case)
    for kind in ("s2", "s3"):
        for case in generated(scratch, 4, kind):
            judged(checks, case, scratch, other, (), case.about["rules"])
    for case in generated(scratch, 12, "s4_masters"):
        masters(checks, case, scratch, other)
    for kind in ("s2_replicas", "s5_e1"):
        for case in generated(scratch, 4, kind):
            mesh = ",".join(f"{name}={size}" for name, size in case.about["mesh"].items())
            judged(checks, case, scratch, other, ("--mesh", mesh), case.about["rules"])
    for case in generated(scratch, 6, "s4_order"):
        arguments = ("--spec", case.spec_path, "--mesh", case.about["given"])
        judged(checks, case, scratch, other, arguments, case.about["rules"])
        with checks.that(f"{case.name}: what was mended raises nothing against the same spec"):
            out = scratch / f"{case.name}_without_spec".replace(" ", "_").replace("/", "_")
            program.must_be_clean(out, "--spec", case.spec_path, "--data")
