"""The HTML report of every fixture in a real browser.

    /usr/bin/python3 pages.py PROGRAM DATA [PICTURES]     exits 77 where there is no browser

It says nothing on the console and asks for nothing but itself; the verdict is seen at once; on a
phone (390 px) and on a desk (1280 px) nothing is wider than the page; every letter is out from
what it is on, in light and in dark; and it prints.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import browser

PROGRAM, DATA = sys.argv[1:3]
PICTURES = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
problems = []

# WCAG AA: 4.5, and 3 for letters of 24 px, or of 18.66 px where they are bold.
FAINT = r"""(() => {
  const light = c => { c = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                       return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
  const rgb = text => text.match(/[\d.]+/g).map(Number);
  const below = e => { for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; }
    return [255, 255, 255]; };
  const faint = new Set();
  for (const e of document.querySelectorAll("body *:not(svg *)")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const a = light(rgb(style.color).slice(0, 3)), b = light(below(e).slice(0, 3));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const big = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (big ? 3 : 4.5))
      faint.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
  }
  return [...faint];
})()"""
# What a reader meets: sizes, and what is cut off without a way to scroll to it.
SHAPE = r"""(() => {
  const h1 = document.querySelector("h1"), box = h1.getBoundingClientRect();
  const cut = [...document.querySelectorAll("body *:not(svg *)")].filter(e =>
    e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
    getComputedStyle(e).overflowX === "hidden");
  return {page: document.documentElement.scrollWidth, window: innerWidth, verdict: h1.innerText,
          top: box.top, bottom: box.bottom, right: box.right, height: innerHeight,
          headings: [...document.querySelectorAll("h2")].map(e => e.textContent),
          tiles: document.querySelectorAll("rect.tile").length,
          cut: cut.map(e => e.className)};
})()"""


def run(*words):
    return subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=250)


def make(job):
    """The page, and what check says of the same."""
    name, words, out = job
    checked = run("check", *words, "--json")
    if "error" in json.loads(checked.stdout):
        return None  # one that is refused has no page
    done = run("report", *words, "--format", "html", "--out", str(out))
    if done.returncode != checked.returncode:
        problems.append(f"{name}: report exits {done.returncode}: {done.stderr[-300:]!r}")
        return None
    return name, out, json.loads(checked.stdout)


def judge_shape(name, page, width, answer):
    page.show(width)
    shape = page.ask(SHAPE)
    if shape["page"] > width:
        problems.append(f"{name}: {shape['page']} px wide on {width}")
    if shape["cut"]:
        problems.append(f"{name}: cut off at {width}: {shape['cut']}")
    if not (0 <= shape["top"] < shape["bottom"] <= shape["height"] and shape["right"] <= width):
        problems.append(f"{name}: the verdict is not in sight at {width}: {shape}")
    clean = answer["verdict"] == "clean"
    if clean != ("No finding" in shape["verdict"]):
        problems.append(f"{name}: {answer['verdict']} reads {shape['verdict']!r}")
    for wanted in ("What is wrong", "Ranks and mesh", "Files", "Tensors"):
        if wanted not in shape["headings"]:
            problems.append(f"{name}: no section {wanted}")
    if answer["depth"] == "data" and answer["verdict"] == "clean" \
            and "Statistics" not in shape["headings"]:
        problems.append(f"{name}: no statistics of {answer['depth']}")
    return shape


def judge(view, name, path, answer):
    page = view.open(path)
    for width in (390, 1280):
        judge_shape(name, page, width, answer)
        for dark in (False, True):
            page.show(width, dark)
            for faint in page.ask(FAINT) if width == 1280 else ():
                problems.append(f"{name}: faint in {'dark' if dark else 'light'}: {faint}")
            if PICTURES:
                (PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png").write_bytes(
                    page.picture(width))
    pdf = page.pdf()
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    if not pdf.startswith(b"%PDF") or sheets < 1 or b"/Font" not in pdf:
        problems.append(f"{name}: prints {sheets} sheets, {len(pdf)} bytes")
    if page.said:
        problems.append(f"{name}: on the console: {page.said[:3]}")
    others = [url for url in page.requests if url != "file://" + str(path)]
    if others:
        problems.append(f"{name}: asks for {others[:3]}")
    view.close(page)


def hostile(scratch):
    """A name that would be markup, one without a place to break, and one of half a kilobyte."""
    name = "<img src=x onerror=alert(1)>\"'&\x01" + "w" * 500
    header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                         "b": {"dtype": "F32", "shape": [1, 1], "data_offsets": [8, 12]}}).encode()
    folder = scratch / ("odd " + "name" * 30)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + b"\0\0\xc0\x7f" * 3)
    return str(folder)


def repaired(scratch):
    """Of one that loses elements: the page says so, and what the certificate says."""
    run("demo", str(scratch / "demo"))
    source = next(path for path in sorted((scratch / "demo").iterdir()) if path.is_dir())
    out = str(scratch / "mended")
    done = run("repair", str(source), "--out", out, "--fill", "zero", "--yes")
    return out if done.returncode in (0, 1) else None


def jobs(scratch):
    for case in sorted({path.parent for path in pathlib.Path(DATA).rglob("ckpt")}):
        name = f"{case.parent.name}-{case.name}"
        spec = ["--spec", str(case / "spec.json")] if (case / "spec.json").exists() else []
        yield name, [str(case / "ckpt"), *spec, "--data"], scratch / (name + ".html")
    yield "hostile", [hostile(scratch), "--data"], scratch / "hostile.html"
    mended = repaired(scratch)
    if mended is None:
        problems.append("the demo could not be repaired")
    else:
        yield "mended", [mended], scratch / "mended.html"


if PICTURES:
    PICTURES.mkdir(parents=True, exist_ok=True)
program = browser.found()
if program is None:
    print("left out: no browser (Debian: apt install chromium-headless-shell)")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = [one for one in pool.map(make, jobs(pathlib.Path(folder))) if one]
    if len(made) < 20:
        problems.append(f"only {len(made)} pages in {DATA}")
    with browser.Browser(program) as view:
        for one in made:
            judge(view, *one)
    mended = pathlib.Path(folder, "mended.html")
    if mended.exists() and "How it was made" not in mended.read_text():
        problems.append("mended: no word of the certificate")
for problem in problems[:40]:
    print(problem)
print(f"{len(made)} pages, {len(problems)} problems")
sys.exit(1 if problems else 0)
