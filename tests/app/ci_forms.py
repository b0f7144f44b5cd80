"""What CI reads is what its readers take, for every fixture: the parsers are not ours.

    /usr/bin/python3 ci_forms.py PROGRAM DATA [SARIF_SCHEMA]

SARIF: with SARIF_SCHEMA, the file that OASIS publishes (sarif-schema-2.1.0.json; it is not ours to
copy), each answer is validated against it. Without, what a viewer cannot do without is looked at here.
JUnit: Python's XML parser. Annotations: one workflow command a line.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

PROGRAM, DATA, *SCHEMA = sys.argv[1:]
problems = []
validator = None
if SCHEMA:
    from jsonschema import Draft4Validator
    validator = Draft4Validator(json.loads(pathlib.Path(SCHEMA[0]).read_text()))


def run(*words):
    return subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=250)


def judge_sarif(where, text, findings):
    log = json.loads(text)
    if validator:
        for error in list(validator.iter_errors(log))[:3]:
            problems.append(f"{where}: SARIF: {list(error.absolute_path)}: {error.message[:200]}")
    job = log["runs"][0]
    rules = job["tool"]["driver"]["rules"]
    results = [one for one in job["results"] if not one["ruleId"].startswith("require/")]
    if log["version"] != "2.1.0" or len(results) != len(findings):
        problems.append(f"{where}: SARIF has {len(results)} results of {len(findings)} findings")
    if len({rule["id"] for rule in rules}) != len(rules):
        problems.append(f"{where}: SARIF names a rule twice")
    for result in job["results"]:
        if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
            problems.append(f"{where}: SARIF: ruleIndex is another rule's")
        for location in result["locations"]:
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            if not re.fullmatch(r"(?:[A-Za-z0-9._~/:-]|%[0-9A-F]{2})+", uri):
                problems.append(f"{where}: SARIF: {uri!r} is no URI")


def judge_junit(where, text, findings):
    suites = xml.etree.ElementTree.fromstring(text)
    cases = suites.findall("testsuite/testcase")
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    wanted = {one["rule"] for one in findings if one["severity"] != "info"}
    if {name for name in failed if not name.startswith("require/")} != wanted:
        problems.append(f"{where}: JUnit fails {failed}, not {wanted}")
    counts = suites.find("testsuite")
    if (int(counts.get("tests")), int(counts.get("failures"))) != (len(cases), len(failed)):
        problems.append(f"{where}: JUnit counts {counts.attrib}")


def judge_github(where, text, findings):
    lines = text.splitlines()
    if len(lines) != len(findings):
        problems.append(f"{where}: {len(lines)} annotations of {len(findings)} findings")
    for line in lines:
        if not re.fullmatch(r"::(error|warning|notice) file=[^:,\n]+,title=[^:,\n]+::.+", line):
            problems.append(f"{where}: no annotation: {line[:200]!r}")


def forms(folder, *more):
    where = " ".join([folder, *more])
    checked = run("check", folder, *more, "--json")
    if checked.returncode > 2:
        return
    answer = json.loads(checked.stdout)
    if "findings" not in answer:
        return
    for form, judge in (("sarif", judge_sarif), ("junit", judge_junit), ("github", judge_github)):
        done = run("report", folder, *more, "--format", form)
        if done.returncode != 0:
            problems.append(f"{where}: --format {form} exits {done.returncode}")
            continue
        judge(where, done.stdout.decode("utf-8"), answer["findings"])


def fixture(case):
    spec = ["--spec", str(case / "spec.json")] if (case / "spec.json").exists() else []
    forms(str(case / "ckpt"), *spec)


def hostile():
    """Names that would end an attribute, a line or a URI."""
    with tempfile.TemporaryDirectory() as scratch:
        name = "a\"<&>'\x01\x7f\u00e9,:%\n::error::b]]>"
        header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                             "b": {"dtype": "F32", "shape": [3], "data_offsets": [8, 16]}}).encode()
        folder = os.path.join(scratch, "odd name, %:")
        os.mkdir(folder)
        with open(os.path.join(folder, "model.safetensors"), "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + b"\0" * 16)
        policy = os.path.join(scratch, "policy")
        pathlib.Path(policy).write_text("require: coverage, finite, optimizer-complete\n")
        forms(folder)
        for form in ("sarif", "junit", "github"):
            done = run("report", folder, "--data", "--format", form, "--policy", policy)
            text = done.stdout.decode("utf-8")
            if form == "junit":
                xml.etree.ElementTree.fromstring(text)
            if form == "sarif" and validator:
                for error in validator.iter_errors(json.loads(text)):
                    problems.append(f"hostile: {error.message[:200]}")
        shutil.rmtree(folder)


cases = sorted({path.parent for path in pathlib.Path(DATA).rglob("ckpt")})
if len(cases) < 20:
    sys.exit(f"only {len(cases)} fixtures in {DATA}")
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for done in [pool.submit(fixture, case) for case in cases] + [pool.submit(hostile)]:
        done.result()
for problem in problems[:40]:
    print(problem)
print(f"{len(cases)} fixtures, {len(problems)} problems")
sys.exit(1 if problems else 0)
