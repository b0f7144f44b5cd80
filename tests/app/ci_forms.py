"""What CI reads is what its readers take, for every fixture: the parsers are not ours.

    /usr/bin/python3 ci_forms.py PROGRAM DATA [SARIF_SCHEMA]

SARIF: with SARIF_SCHEMA, the file that OASIS publishes (sarif-schema-2.1.0.json; it is not ours to
copy), each answer is validated against it. Without, what a viewer cannot do without is read here.
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


# Rules whose findings say that something could not be looked at.
UNDECIDED = {"not-looked-at"}


def required(answer, verdict):
    return {f"require/{one['require']}" for one in answer.get("policy", [])
            if one["verdict"] == verdict}


def judge_sarif(where, text, answer):
    findings = answer["findings"]
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
    open_rules = {one["rule"] for one in findings} & UNDECIDED | required(answer, "undecided")
    invocation = job["invocations"][0]
    noted = {one["descriptor"]["id"] for one in invocation.get("toolExecutionNotifications", [])
             if one["level"] == "warning"}
    if noted != open_rules or invocation["executionSuccessful"] == bool(open_rules):
        problems.append(f"{where}: SARIF notes {noted}, not {open_rules}")
    for result in results:
        is_open = result["ruleId"] in UNDECIDED
        if (result["kind"] == "open") != is_open or (result["level"] == "none") != is_open:
            problems.append(f"{where}: SARIF: {result['ruleId']} is {result['kind']}")
    for result in job["results"]:
        if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
            problems.append(f"{where}: SARIF: ruleIndex is another rule's")
        for location in result["locations"]:
            uri = location["physicalLocation"]["artifactLocation"]["uri"]
            if not re.fullmatch(r"(?:[A-Za-z0-9._~/:-]|%[0-9A-F]{2})+", uri):
                problems.append(f"{where}: SARIF: {uri!r} is not a URI")


def judge_junit(where, text, answer):
    findings = answer["findings"]
    suites = xml.etree.ElementTree.fromstring(text)
    cases = suites.findall("testsuite/testcase")
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    errors = {case.get("name") for case in cases if case.find("error") is not None}
    wanted = {one["rule"] for one in findings if one["severity"] != "info"} - UNDECIDED
    wanted |= required(answer, "broken")
    undecided = {one["rule"] for one in findings} & UNDECIDED | required(answer, "undecided")
    if errors != undecided:
        problems.append(f"{where}: JUnit has errors {errors}, not {undecided}")
    if failed != wanted:
        problems.append(f"{where}: JUnit fails {failed}, not {wanted}")
    counts = suites.find("testsuite")
    said = tuple(int(counts.get(name)) for name in ("tests", "failures", "errors"))
    if said != (len(cases), len(failed), len(errors)):
        problems.append(f"{where}: JUnit counts {counts.attrib}")


def judge_github(where, text, answer):
    findings, lines = answer["findings"], text.splitlines()
    wanted = len(findings) + len(required(answer, "broken")) + len(required(answer, "undecided"))
    if len(lines) != wanted:
        problems.append(f"{where}: {len(lines)} annotations, not {wanted}")
    for one in findings:
        word = "warning" if one["rule"] in UNDECIDED else {"info": "notice"}.get(
            one["severity"], one["severity"])
        if not any(line.startswith(f"::{word} ") and f"title={one['rule']}::" in line
                   for line in lines):
            problems.append(f"{where}: no {word} of {one['rule']}")
    for line in lines:
        if not re.fullmatch(r"::(error|warning|notice) file=[^:,\n]+,title=[^:,\n]+::.+", line):
            problems.append(f"{where}: no annotation: {line[:200]!r}")


def forms(folder, *more):
    where = " ".join([folder, *more])
    checked = run("check", folder, *more, "--json")
    if checked.returncode > 2:
        return False
    answer = json.loads(checked.stdout)
    if "findings" not in answer:
        return False
    for form, judge in (("sarif", judge_sarif), ("junit", judge_junit), ("github", judge_github)):
        done = run("report", folder, *more, "--format", form)
        if done.returncode != checked.returncode:
            problems.append(f"{where}: --format {form} exits {done.returncode}")
            continue
        judge(where, done.stdout.decode("utf-8"), answer)
    return True


def undecided():
    """What could not be checked is green nowhere, known before or not."""
    folder = os.path.join(DATA, "h5py", "kinds.h5")
    if not forms(folder, "--data"):
        problems.append("undecided: nothing was checked")
    with tempfile.TemporaryDirectory() as scratch:
        known = os.path.join(scratch, "known.json")
        checked = run("check", folder, "--data", "--json")
        pathlib.Path(known).write_bytes(checked.stdout)
        words = ("report", folder, "--data", "--baseline", known, "--format")
        suite = xml.etree.ElementTree.fromstring(run(*words, "junit").stdout).find("testsuite")
        job = json.loads(run(*words, "sarif").stdout)["runs"][0]
        if suite.get("failures") != "0" or suite.get("errors") != "1":
            problems.append(f"undecided: JUnit counts {suite.attrib}")
        if job["invocations"][0]["executionSuccessful"]:
            problems.append("undecided: SARIF says that all was executed")
        if b"::warning " not in run(*words, "github").stdout:
            problems.append("undecided: no annotation warns")


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
        for more in ((), ("--policy", policy), ("--data", "--policy", policy)):
            if not forms(folder, *more):
                problems.append(f"hostile: nothing was checked with {more}")
        shutil.rmtree(folder)


cases = sorted({path.parent for path in pathlib.Path(DATA).rglob("ckpt")})
if len(cases) < 20:
    sys.exit(f"only {len(cases)} fixtures in {DATA}")
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for done in [*(pool.submit(fixture, case) for case in cases), pool.submit(hostile),
                 pool.submit(undecided)]:
        done.result()
for problem in problems[:40]:
    print(problem)
print(f"{len(cases)} fixtures, {len(problems)} problems")
sys.exit(1 if problems else 0)
