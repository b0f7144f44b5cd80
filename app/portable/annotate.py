"""Prints what a SARIF file of `shardwright report` says as annotations of GitHub's log.

    annotate.py FILE.sarif CHECKPOINT

action.yml uses it, so that one pass over the checkpoint serves both.
"""

import json
import sys

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def escaped(text, is_property=False):
    text = "".join(char if char.isprintable() or char in "\r\n" else f"\\x{ord(char):02x}"
                   for char in text)  # names in a checkpoint may be anything
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(char, code)
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text


def annotations(sarif):
    """(command, title, message) of each finding, and of each error that is no finding."""
    for run in sarif["runs"]:
        rules = set()
        for result in run.get("results", []):
            rules.add(result["ruleId"])
            if result.get("kind") == "pass":
                continue
            # A finding that stays open has the level "none".
            command = COMMANDS.get(result.get("level"), "warning")
            if result.get("baselineState") == "unchanged":
                command = "notice"
            subjects = [place["fullyQualifiedName"] for location in result.get("locations", [])
                        for place in location.get("logicalLocations", [])]
            more = "" if len(subjects) < 4 else f" and {len(subjects) - 3} more"
            where = f" ({', '.join(subjects[:3])}{more})" if subjects else ""
            yield command, result["ruleId"], result["message"]["text"] + where
        for invocation in run.get("invocations", []):
            for note in invocation.get("toolExecutionNotifications", []):
                rule = note.get("descriptor", {}).get("id", "shardwright")
                if rule not in rules:
                    yield COMMANDS.get(note.get("level"), "error"), rule, note["message"]["text"]


def main(path, checkpoint):
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    with open(path, encoding="utf-8") as file:
        for command, title, message in annotations(json.load(file)):
            print(f"::{command} file={escaped(checkpoint, True)},title={escaped(title, True)}"
                  f"::{escaped(message)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
