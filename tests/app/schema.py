"""Every answer of every verb, on every fixture, against the schema.

    /usr/bin/python3 schema.py PROGRAM DATA SCHEMA

The validator is Debian's python3-jsonschema: not ours, so that it shares no mistake with us. Each
answer is compared with the part of the schema that its verb promises, with the exit code that goes
with it; and each kind of answer, with a key taken away or misspelt, must fail. The causes of findings
are held to a length that can be read at one glance.
"""

import concurrent.futures
import copy
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit("python3-jsonschema is missing: apt-get install python3-jsonschema")

PROGRAM, DATA, SCHEMA = sys.argv[1:]
schema = json.loads(pathlib.Path(SCHEMA).read_text())
Draft202012Validator.check_schema(schema)
kinds = {kind: Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})
         for kind in schema["$defs"]}
whole = Draft202012Validator({key: schema[key] for key in schema if key != "$id"})
problems, examples = [], {}


def run(*words, env=None):
    done = subprocess.run([PROGRAM, *words, "--json"], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=250, env={**os.environ, **(env or {})})
    return done.returncode, done.stdout.decode()


def refuse_constant(name):
    raise ValueError(name + " is not JSON")


def judge_cause(where, finding):
    """At most three sentences of at most 40 words, lists in parentheses left out."""
    text = finding.get("cause", "") if isinstance(finding, dict) else ""
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z`])", re.sub(r"\([^()]*\)", "", text))
    longest = max(len(sentence.split()) for sentence in sentences)
    if len(sentences) > 3 or longest > 40:
        problems.append(f"{where}: {finding['rule']}: the cause has {len(sentences)} sentences, "
                        f"the longest of {longest} words: {text}")


def judge(kind, words, code, text, codes):
    where = " ".join(words)
    try:
        answer = json.loads(text, parse_constant=refuse_constant)
    except ValueError as problem:
        problems.append(f"{where}: no JSON ({problem}): {text[:200]!r}")
        return None
    if kind != "error" and "error" in answer and code in (2, 3, 4):
        kind, codes = "error", (2, 3, 4)  # what cannot be done is said in the same way everywhere
    if "repaired" in answer and words[0] == "repair":
        kind, codes = "unchanged", (0,)  # there was nothing to repair
    if code not in codes:
        problems.append(f"{where}: exit code {code}, expected one of {codes}")
    for validator in (kinds[kind], whole):
        for error in list(validator.iter_errors(answer))[:3]:
            problems.append(f"{where}: {kind}: {error.json_path}: {error.message[:300]}")
    for finding in answer.get("findings", []) if isinstance(answer, dict) else []:
        judge_cause(where, finding)
    if isinstance(answer, dict):
        examples.setdefault(kind, answer)
    return answer


def ask(kind, words, codes=(0,), env=None):
    code, text = run(*words, env=env)
    return judge(kind, words, code, text, codes)


def repairs(folder, spec, scratch):
    out = str(scratch / "out")
    ask("error", ["repair", folder, *spec], (3, 0, 2))
    done = ask("repair", ["repair", folder, *spec, "--out", out, "--yes"], (0, 1))
    if done and "certificate" in done:
        alone = ask("verify", ["verify", out], (0, 1, 2))
        beside = ask("verify", ["verify", out, "--against", folder], (0, 1, 2))
        if alone["verdict"] != beside["verdict"]:
            problems.append(f"{folder}: {alone} is, next to its source, {beside}")
        ask("repair", ["resume", out])  # complete already
        ask("error", ["resume", "--roll-back", out], (3,))
        for name, kind in (("certificate", "certificate"), ("lost", "lost")):
            for path in pathlib.Path(out).rglob(f"{name}.json"):
                judge(kind, [str(path)], 0, path.read_text(), (0,))
        half_made = pathlib.Path(out + ".shardwright-partial-1")
        half_made.mkdir()
        pathlib.Path(out).rename(scratch / "away")
        ask("error", ["resume", out], (3,))
        ask("rolled_back", ["resume", "--roll-back", out])
    copied = str(scratch / "copy")
    shutil.copytree(folder, copied)
    done = ask("repair", ["repair", copied, *spec, "--in-place", "--yes"], (0, 1))
    if done and "certificate" in done:
        ask("undo", ["undo", copied], (0, 2))
        done = ask("repair", ["repair", copied, *spec, "--in-place", "--yes"], (0, 1))
        if done and "certificate" in done:
            ask("commit", ["commit", copied])
            ask("error", ["undo", copied], (3,))


def transforms(folder, scratch):
    """Other tiles, other formats, steps: what is broken or cannot be said is refused."""
    def judged(words):
        code, text = run(*words)
        judge("repair" if code in (0, 1) else "error", words, code, text, (0, 1, 2))
        return code
    if judged(["reshard", folder, "--mesh", "dp=2,tp=2", "--out", str(scratch / "r"), "--yes"]) == 0:
        ask("verify", ["verify", str(scratch / "r")])
        ask("verify", ["verify", str(scratch / "r"), "--against", folder])
        judge("certificate", ["certificate"], 0, (scratch / "r/certificate.json").read_text(), (0,))
    for to in ("dcp", "safetensors"):
        judged(["convert", folder, "--to", to, "--out", str(scratch / to), "--yes"])
    ask("error", ["reshard", folder, "--mesh", "dp=2", "--out", str(scratch / "n")], (2, 3))
    steps = scratch / "steps.json"
    steps.write_text(json.dumps({"schema": "shardwright/2", "steps": [
        {"step": "retile", "tensors": ["*"], "tiles": []}], "target": {"format": "dcp"}}))
    code, text = run("plan", folder, "--plan", str(steps))
    judge("plan" if code == 0 else "error", ["plan"], code, text, (0, 2, 3))
    steps.write_text('{"schema": "shardwright/2", "steps": [{"step": "dorp", "tensors": ["*"]}]}')
    ask("error", ["plan", folder, "--plan", str(steps)], (2,))


def fixture(case, is_rewritten):
    folder = str(case / "ckpt")
    ask("info", ["info", folder])
    listed = ask("list", ["ls", folder])
    ask("check", ["check", folder, "--data"], (0, 1, 2))
    spec = ["--spec", str(case / "spec.json")] if (case / "spec.json").exists() else []
    checked = ask("check", ["check", folder, *spec], (0, 1, 2))
    with tempfile.TemporaryDirectory() as scratch:
        baseline, policy = pathlib.Path(scratch, "b.json"), pathlib.Path(scratch, "p.json")
        baseline.write_text(json.dumps(checked))
        policy.write_text('{"require": ["coverage", "finite", "optimizer-complete"]}')
        ask("check", ["check", folder, *spec, "--baseline", str(baseline), "--policy", str(policy)],
            (0, 1, 2))
    ask("plan", ["plan", folder, *spec], (0, 1))
    if not is_rewritten:
        return
    ask("stats", ["stats", folder], (0, 2))
    ask("hash", ["hash", folder], (0, 2))
    other = sorted(case.parent.glob("*/ckpt"))[0]
    for words in ([folder, folder], [folder, str(other)]):
        ask("diff", ["diff", *words], (0, 1, 2))
        ask("diff", ["diff", *words, "--data"], (0, 1, 2))
        ask("learned", ["learn", *words], (0, 1, 2))
    if listed and listed.get("tensors"):
        first = listed["tensors"][0]["fqn"]
        ask("show", ["show", folder, first])
        ask("show", ["show", folder, first, "--values", "--limit", "0"])
        ask("map", ["map", folder, first, *spec])
    with tempfile.TemporaryDirectory() as scratch:
        ask("report", ["report", folder, "--out", os.path.join(scratch, "r.md")], (0, 1, 2))
        ask("exported", ["export-hdf5", folder, "--out", os.path.join(scratch, "r.h5")], (0, 2))
        repairs(folder, spec, pathlib.Path(scratch))
        transforms(folder, pathlib.Path(scratch))


class Bucket(http.server.BaseHTTPRequestHandler):
    """As much of S3 as takes a folder."""

    objects = {}

    def log_message(self, *words):
        pass

    def do_GET(self):
        key = urllib.parse.unquote(self.path.split("?")[0]).removeprefix("/bucket/")
        body = b""
        if self.command == "PUT":
            self.objects[key] = self.rfile.read(int(self.headers["Content-Length"]))
        elif self.command == "DELETE":
            self.objects.pop(key)
        else:
            body = "".join(f"<Contents><Key>{name}</Key><Size>{len(held)}</Size></Contents>"
                           for name, held in self.objects.items())
            body = f"<ListBucketResult>{body}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_DELETE = do_GET


def upload(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
           "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    ask("uploaded", ["upload", folder, "s3://bucket/there"], env=env)
    ask("error", ["upload", folder, "s3://bucket/there"], (3,), env=env)
    server.shutdown()


def others():
    upload(str(pathlib.Path(DATA, "torch-2.14/healthy_grid/ckpt")))
    ask("version", ["--version"])
    rules = ask("rules", ["explain"])
    for rule in rules["rules"][:3]:
        ask("rule", ["explain", rule["rule"]])
    message = ("Size mismatch between saved torch.Size([64]) and current: torch.Size([128]) for "
               "optimizer.state.0.exp_avg")
    ask("explanation", ["explain", message])
    ask("explanation", ["explain", message, "--world", "4:2"])
    ask("forecast", ["explain", "glu-split-local", "--rows", "4,8", "--tp", "2"])
    ask("error", ["explain", "the weather in Paris is fine"], (2,))
    ask("entry", ["show", str(pathlib.Path(DATA, "torch-2.14/healthy_grid/ckpt")), "object.list"])
    ask("error", ["info", "/no/such/checkpoint"], (4,))
    healthy = str(pathlib.Path(DATA, "torch-2.14/healthy_grid/ckpt"))
    ask("checks", ["check", healthy, healthy, "/no/such/checkpoint"], (4,))
    for words in (["chekc", "x"], ["check"], ["check", "x", "--spce", "y"], ["show", "x"],
                  ["check", "x", "--depth", "deep"], ["-q", "check", "x"], ["explain", "no-rule"]):
        ask("error", words, (3,))
    with tempfile.TemporaryDirectory() as scratch:
        ask("demo", ["demo", os.path.join(scratch, "demo")])
        for step in ("step_1", "step_2"):
            shutil.copytree(healthy, os.path.join(scratch, "run", step))
        ask("run_stats", ["stats", os.path.join(scratch, "run"), "--by-step"])
        ask("error", ["undo", os.path.join(scratch, "demo", "step_9000")], (3,))
        ask("verify", ["verify", os.path.join(scratch, "demo", "step_9000")], (2,))


def strictness():
    """A schema that lets everything through would pass all that is above."""
    for kind, answer in examples.items():
        for key in answer:
            required = key in schema["$defs"][kind]["required"]
            closed = schema["$defs"][kind].get("additionalProperties") is False
            without = {k: v for k, v in answer.items() if k != key}
            misspelt = {**without, key + "s": answer[key]}
            for name, wrong in (("without", without), ("misspelt", misspelt)):
                must_fail = required or (closed and name == "misspelt")
                if must_fail and (kinds[kind].is_valid(wrong) or whole.is_valid(wrong)):
                    problems.append(f"{kind} {name} {key} passes")
    finding = copy.deepcopy(next(a for a in [examples["check"]] if a))
    finding["findings"] = [{"rule": "x"}]
    if whole.is_valid(finding):
        problems.append("a finding without its keys passes")


cases = sorted(path.parent for path in pathlib.Path(DATA).glob("*/*/ckpt"))
if len(cases) < 40:
    problems.append(f"only {len(cases)} fixtures in {DATA}")
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    # All are looked at; what takes longer is asked of every third.
    list(pool.map(fixture, cases, (i % 3 == 0 for i in range(len(cases)))))
others()
strictness()
for kind in kinds:
    if "required" in schema["$defs"][kind] and "schema" in schema["$defs"][kind]["required"] \
            and kind not in examples:
        problems.append(f"no answer of the kind {kind} was seen")
print("\n".join(problems) or f"{len(cases)} fixtures, {len(examples)} kinds of answer: all valid")
sys.exit(1 if problems else 0)
