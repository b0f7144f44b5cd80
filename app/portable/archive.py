"""Prints the archive that apt takes this distribution's packages from, as it stands in a source line:
[signed-by=KEYRING] URI.

    archive.py CODENAME [FOLDER]        FOLDER is /etc/apt
"""

import pathlib
import re
import sys


def of_lines(text):
    """(URI, suites, components, keyring) of lines `deb [OPTIONS] URI SUITE COMPONENT...`"""
    for line in text.splitlines():
        entry = re.match(r"deb\s+(?:\[([^]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]*)", line.strip())
        if entry:
            key = re.search(r"signed-by=(\S+)", entry[1] or "")
            yield entry[2], [entry[3]], entry[4].split(), key[1] if key else ""


def of_stanzas(text):
    """The same of a file of deb822, whose stanzas are divided by empty lines."""
    for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
        fields = {name.lower(): re.sub(r"\s+", " ", value).strip() for name, value in re.findall(
            r"(?m)^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza)}
        if "deb" not in fields.get("types", "").split() or fields.get("enabled") == "no":
            continue
        key = fields.get("signed-by", "")
        for uri in fields.get("uris", "").split():
            yield (uri, fields.get("suites", "").split(), fields.get("components", "").split(),
                   key if key.startswith("/") and " " not in key else "")


def archive_of(folder, codename):
    """Of the entries for this release, that of the distribution rather than of a third party."""
    found = []
    parts = folder / "sources.list.d"
    for path in [*sorted(parts.glob("*.sources")), folder / "sources.list", *sorted(parts.glob("*.list"))]:
        if not path.is_file():
            continue
        read = of_stanzas if path.suffix == ".sources" else of_lines
        found += [(uri, key) for uri, suites, components, key in read(path.read_text(errors="replace"))
                  if codename in suites and "main" in components]
    own = [one for one in found if re.search(r"/(debian|ubuntu|ubuntu-ports)/*$", one[0])]
    return next(iter(own + found), None)


def main(codename, folder="/etc/apt"):
    archive = archive_of(pathlib.Path(folder), codename)
    if archive is None:
        sys.exit(f"package: {folder} names no archive of {codename or 'this release'}; "
                 "set SHARDWRIGHT_ARCHIVE to its URL")
    uri, key = archive
    print(f"[signed-by={key}] {uri}" if key else uri)


if __name__ == "__main__":
    main(*sys.argv[1:])
