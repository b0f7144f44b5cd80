"""Every form of damaged and hostile checkpoints, in front of readers that are not ours.

    python3 damaged_forms.py PROGRAM DATA SCHEMA [COUNT] [SEED] [SARIF_SCHEMA]

COUNT fixtures, drawn again each time, are damaged at a random place; next to them are checkpoints
whose names would be markup, escapes, line ends or no text at all. JSON and SARIF go to a parser of
JSON (and validators, where there are any), JUnit to one of XML, HTML to one of HTML, the tables to
h5py where it is installed; Markdown, annotations and text are compared with what they must not
contain. Nothing may crash, and a name may never be markup.
"""

import concurrent.futures
import html.parser
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

try:
    from jsonschema import Draft4Validator, Draft202012Validator
except ImportError:
    Draft202012Validator = None
try:
    import h5py
except ImportError:
    h5py = None
try:
    import markdown_it
except ImportError:
    markdown_it = None

PROGRAM, DATA, SCHEMA = sys.argv[1:4]
SMALL = pathlib.Path(DATA) / "torch-2.6" / "healthy_fsdp" / "ckpt"
COUNT = int(sys.argv[4]) if len(sys.argv) > 4 else 40
SEED = sys.argv[5] if len(sys.argv) > 5 else "1"
sarif = Draft202012Validator and len(sys.argv) > 6 and Draft4Validator(
    json.loads(pathlib.Path(sys.argv[6]).read_text()))
whole = None
if Draft202012Validator:
    whole = Draft202012Validator({key: value for key, value in
                                  json.loads(pathlib.Path(SCHEMA).read_text()).items() if key != "$id"})
problems = []

# What a name may try: each is one that some form of text gives a meaning.
NAMES = [
    "<img src=x onerror=alert(1)>\"'&amp;", "</details></table></section><script>alert(1)</script>",
    "a|b`c``d\\|e", "]]>--><!--", "x\n\n# A heading\n\n| a | b |\n|---|---|", "\r\n::error::b%0A%25",
    "\x1b[31mred\x1b]0;title\x07\x1b[2J", "\u202egnp.exe\u202c", "a\u2028b\u2029c\u0085d", "\x00nul\x7f",
    "w" * 10_000, "../../../etc/passwd", "%41%0a%", "file:,title=x::", "\ufeff\ufffe", "![x](javascript:x)",
    "[x](http://example.com) @somebody #1 https://example.com", "\ud83d\ude00".encode("utf-16", "surrogatepass")
    .decode("utf-16"), " ", "-", "=1+1", "$(touch /tmp/x)`id`",
]
# Letters that no text for people may hand on: controls, and what turns or breaks lines.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def run(*words):
    return subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=300, env=dict(os.environ, NO_COLOR="1"))


class Page(html.parser.HTMLParser):
    """Tags that we write and no others, each closed by its own."""
    TAGS = set("html head meta title style body header h1 h2 h3 h4 span p code main section ul li "
               "table tr th td div pre b br svg g rect path line text tspan title defs pattern figure "
               "figcaption details summary".split())
    EMPTY = {"meta", "br", "rect", "path", "line"}

    def __init__(self):
        super().__init__()
        self.open, self.wrong = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.TAGS or any(name.startswith("on") or name in ("href", "src")
                                       for name, _ in attributes):
            self.wrong.append(f"<{tag} {attributes}>"[:200])
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        if tag not in self.TAGS:
            self.wrong.append(f"<{tag}/>")

    def handle_endtag(self, tag):
        if tag in self.EMPTY:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_comment(self, data):
        self.wrong.append(f"a comment: {data[:80]!r}")


def judge_html(text):
    page = Page()
    page.feed(text)
    page.close()
    return page.wrong[:3] + ([f"{page.open} stay open"] if page.open else [])


# In a form that GitHub shows: rendered, only tags that Markdown and our folds make.
MARKDOWN_TAGS = set("h1 h2 h3 p ul li code pre table thead tbody tr th td strong em hr details "
                    "summary br".split())


def judge_markdown(text):
    wrong = []
    if len(text) > 65_536:
        wrong.append(f"{len(text)} characters, and an issue takes 65,536")
    if markdown_it:
        shown = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        tags = set(re.findall(r"<\s*/?([a-zA-Z][a-zA-Z0-9]*)", shown))
        if tags - MARKDOWN_TAGS:
            wrong.append(f"renders {sorted(tags - MARKDOWN_TAGS)}")
        headings = re.findall(r"<h1>", shown)
        if len(headings) != 1:
            wrong.append(f"{len(headings)} titles")
        if shown.count("<details>") != shown.count("</details>"):
            wrong.append("a fold is not closed")
    return wrong


def judge_json(text):
    answer = json.loads(text)
    return [f"{error.json_path}: {error.message[:200]}" for error in
            list(whole.iter_errors(answer))[:3]] if whole else []


def judge_sarif(text):
    log = json.loads(text)
    if sarif:
        return [f"{list(error.absolute_path)}: {error.message[:200]}"
                for error in list(sarif.iter_errors(log))[:3]]
    return [] if log["version"] == "2.1.0" and log["runs"] else ["no SARIF"]


def judge_junit(text):
    suites = xml.etree.ElementTree.fromstring(text)
    return [] if suites.findall("testsuite/testcase") is not None else ["no JUnit"]


def judge_github(text):
    return [f"no annotation: {line[:120]!r}" for line in text.split("\n")[:-1] if not re.fullmatch(
        r"::(error|warning|notice) file=[^:,\n]+,title=[^:,\n]+::.+", line)][:3]


FORMS = {"html": judge_html, "md": judge_markdown, "json": judge_json, "sarif": judge_sarif,
         "junit": judge_junit, "github": judge_github}


def judge_tables(name, target, depth, scratch):
    out = scratch / "tables.h5"
    done = run("report", target, *depth, "--format", "hdf5", "--out", str(out))
    if not out.exists():
        return
    if h5py:
        with h5py.File(out, "r") as file:
            for table in ("tensors", "files", "findings"):
                rows = file[table][()]
                for column in rows.dtype.names or ():
                    for cell in rows[column][:50]:
                        if isinstance(cell, bytes):
                            cell.decode("utf-8", "surrogateescape")
    out.unlink()


def judge(name, target, scratch):
    checked = run("check", target, "--json")
    if checked.returncode not in (0, 1, 2, 4):
        problems.append(f"{name}: check exits {checked.returncode}: {checked.stderr[-200:]!r}")
        return
    answer = json.loads(checked.stdout)
    refused = "error" in answer
    for depth in ((), ("--data",)):
        for form, reader in FORMS.items():
            done = run("report", target, *depth, "--format", form)
            if done.returncode not in (0, 1, 2, 4) or (
                    not depth and done.returncode != checked.returncode):
                problems.append(f"{name}: {form}: exits {done.returncode}: {done.stderr[-300:]!r}")
                continue
            if refused:
                continue
            where = f"{name}: {form}{' --data' if depth else ''}"
            try:
                text = done.stdout.decode("utf-8")
                found = reader(text)
                unsafe = form not in ("json", "sarif") and UNSAFE.search(text)
                if unsafe:
                    found.append(f"holds {unsafe.group()!r} in "
                                 f"{text[max(0, unsafe.start() - 40):unsafe.end() + 20]!r}")
            except Exception as problem:
                found = [f"{type(problem).__name__}: {str(problem)[:300]}"]
            problems.extend(f"{where}: {one}" for one in found)
    for words in (("check",), ("info",), ("ls",), ("plan",), ("stats",)):
        done = run(*words, target)
        if done.returncode not in (0, 1, 2, 3, 4):
            problems.append(f"{name}: {words[0]} exits {done.returncode}")
        told = (done.stdout + done.stderr).decode("utf-8", "replace")
        unsafe = UNSAFE.search(told)
        if unsafe:
            problems.append(f"{name}: {words[0]} prints {unsafe.group()!r}")
    if not refused:
        judge_tables(name, target, ("--data",), scratch)


def damage(path, chance):
    """One wound of a random kind, in words."""
    data = bytearray(path.read_bytes())
    kind = chance.choice(("flip", "cut", "zero", "gone", "longer", "empty", "noise", "text"))
    at = chance.randrange(len(data)) if data else 0
    if kind == "flip" and data:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[at:]
    elif kind == "zero":
        data[at:at + 64] = bytes(len(data[at:at + 64]))
    elif kind == "longer":
        data += b"\x1b[31m" * chance.randrange(1, 50)
    elif kind == "empty":
        data = b""
    elif kind == "noise" and data:
        noise = chance.randbytes(chance.randrange(1, 200))
        data[at:at + len(noise)] = noise[:len(data) - at]
    elif kind == "text" and data:  # a hostile name instead of some letters of a name
        words = [m for m in re.finditer(rb"[A-Za-z_.]{6,60}", data)]
        if words:
            word = chance.choice(words)
            hostile = chance.choice(NAMES).encode("utf-8", "surrogatepass")[:word.end() - word.start()]
            data[word.start():word.start() + len(hostile)] = hostile
    if kind == "gone":
        path.unlink()
    else:
        path.write_bytes(bytes(data))
    return f"{kind} of {path.name} at {at}"


def damaged(number):
    chance = random.Random(f"{SEED}/{number}")
    source = chance.choice(sources)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        target = scratch / source.name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        files = sorted(p for p in target.rglob("*") if p.is_file()) if target.is_dir() else [target]
        told = damage(chance.choice(files), chance)
        try:
            judge(f"{number}: {source.relative_to(DATA)}: {told}", str(target), scratch)
        except Exception as problem:
            problems.append(f"{number}: {source}: {told}: {type(problem).__name__}: {problem}")


def safetensors(path, names, bad_bytes=False):
    header, at = {}, 0
    for name in names:
        header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]}
        at += 8
    text = json.dumps(header, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if bad_bytes:
        text = text.replace(b"BAD", b"\xff\xfe\xc0")
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0\0\xc0\x7f" * (at // 4 - 1))


def hostile(index):
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        where = scratch / "ckpt"
        where.mkdir()
        if index < len(NAMES):
            safetensors(where / "model.safetensors", [NAMES[index], NAMES[index] + "2", "plain"])
        elif index == len(NAMES):
            safetensors(where / "model.safetensors", NAMES)
        elif index == len(NAMES) + 1:
            safetensors(where / "model.safetensors", ["BAD", "plain"], bad_bytes=True)
        else:  # the names of files and of the folder itself
            where = scratch / "x<b>&\"'|`\x1b[31m\n]]>"
            where.mkdir()
            safetensors(where / "a`|<i>\u202e\x07%,:.safetensors", ["one", "two"])
        judge(f"hostile {index}", str(where), scratch)


def life_in_a_hostile_folder():
    """Every verb that talks of paths, and what it says to type next, typed into a shell."""
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder) / "x<b>&\"'|`\x1b[31m\n\u202e\\]]>7"
        home.mkdir()

        def do(*words, codes=(0,)):
            done = run(*words)
            told = (done.stdout + done.stderr).decode("utf-8", "replace")
            if done.returncode not in codes:
                problems.append(f"a life: {words[0]} exits {done.returncode}: {told[-300:]!r}")
            unsafe = UNSAFE.search(told)
            if unsafe:
                problems.append(f"a life: {words[0]} prints {unsafe.group()!r} in "
                                f"{told[max(0, unsafe.start() - 80):unsafe.end() + 20]!r}")
            return told

        demo, spec = str(home / "demo" / "step_9000"), str(home / "demo" / "spec.json")
        do("demo", str(home / "demo"))
        do("info", demo)
        do("check", demo, "--spec", spec, codes=(1,))
        do("check", demo, "--spec", spec, "--data", codes=(1,))
        told = do("plan", demo, "--spec", spec, "--explain", codes=(0, 1))
        typed = re.search(r"(?m)^.*?(shardwright repair .*)$", told)
        if not typed:
            problems.append(f"a life: plan says nothing to type: {told[-300:]!r}")
            return
        line = typed.group(1).replace("shardwright", '"$0"', 1) + " --yes"
        typed = subprocess.run(["bash", "-c", line, PROGRAM], stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=300, env=dict(os.environ, NO_COLOR="1"))
        told = (typed.stdout + typed.stderr).decode("utf-8", "replace")
        if typed.returncode not in (0, 1) or UNSAFE.search(told):
            problems.append(f"a life: what plan said to type exits {typed.returncode}: {told!r}")
        mended = demo + "-repaired"
        do("verify", mended)
        do("verify", mended, "--against", demo, codes=(0, 1))
        do("diff", demo, mended, codes=(0, 1))
        do("map", demo, "lm_head.weight")
        # The demo's payloads are holes, which are written out here: 1.2 GB each time. So a small one stands in.
        small = str(shutil.copytree(SMALL, home / "small"))
        do("convert", small, "--to", "safetensors", "--weights-only", "--out", str(home / "one\x07"),
           "--yes")
        do("reshard", small, "--mesh", "tp=2", "--out", str(home / "two\x1b]0;t\x07"), "--yes")
        do("repair", demo, "--spec", spec, "--out", mended, codes=(2, 3, 4))
        do("repair", demo, "--spec", spec, "--in-place", "--yes")
        do("resume", demo, codes=(0, 2, 3))
        do("undo", demo)
        for path in sorted(pathlib.Path(demo).glob("*.distcp"))[:1]:
            path.unlink()
        do("check", demo, "--spec", spec, codes=(1, 2))
        do("plan", demo, "--spec", spec, codes=(1,))
        do("repair", demo, "--spec", spec, "--out", str(home / "three"), "--yes", codes=(1, 2, 4))
        do("resume", mended + "\x1b", codes=(2, 3, 4))
        do("check", str(home / "nothing\x1b[2J"), codes=(2, 3, 4))


sources = sorted(path for path in pathlib.Path(DATA).rglob("*")
                 if path.name == "ckpt" or path.suffix in (".h5", ".keras"))
if len(sources) < 40:
    problems.append(f"only {len(sources)} fixtures in {DATA}")
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(hostile, range(len(NAMES) + 3)))
    list(pool.map(damaged, range(COUNT)))
life_in_a_hostile_folder()
print("\n".join(problems[:60]))
print(f"{COUNT} damaged and {len(NAMES) + 3} hostile checkpoints, {len(problems)} problems")
sys.exit(1 if problems else 0)
