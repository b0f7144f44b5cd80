"""Findings as plain objects."""

from __future__ import annotations

import collections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

    class _Finding(NamedTuple):
        rule: str
        severity: str
        subjects: Tuple[str, ...]
        cause: str
        consequence: str
        evidence: Dict[str, Any]
        remedy: Dict[str, Any]
else:
    # A dataclass, or NamedTuple with the module typing, would cost 10 ms at import.
    _Finding = collections.namedtuple("_Finding", [
        "rule", "severity", "subjects", "cause", "consequence", "evidence", "remedy"])


class Finding(_Finding):
    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.severity} {self.rule}: {self.cause}"


def _first_of(subjects, shown=3):
    more = len(subjects) - shown
    return ", ".join(map(str, subjects[:shown])) + (f" and {more} more" if more > 0 else "")


class Report:
    """What a check found. It is true where nothing was found at or above a warning."""

    def __init__(self, answer: Dict[str, Any]) -> None:
        self.answer = answer
        self.verdict: str = answer["verdict"]
        self.depth: str = answer["depth"]
        self.unjudged: List[Dict[str, Any]] = answer["unjudged"]
        self.findings = [
            Finding(one["rule"], one["severity"], tuple(one.get("subjects") or ()), one["cause"],
                    one.get("consequence") or "", one.get("evidence") or {},
                    one.get("remedy") or {})
            for one in answer["findings"]]

    def __bool__(self) -> bool:
        return self.verdict == "clean"

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        return f"<shardwright.Report {self.verdict}: {len(self)} findings, depth {self.depth}>"

    def columns(self) -> Dict[str, List[Any]]:
        """For pandas and polars."""
        return {"rule": [one.rule for one in self.findings],
                "severity": [one.severity for one in self.findings],
                "subjects": [list(one.subjects) for one in self.findings],
                "cause": [one.cause for one in self.findings]}

    def _repr_html_(self) -> str:
        import html
        rows = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(text)}</td>" for text in (
                one.severity, one.rule, _first_of(one.subjects), one.cause,
                (one.remedy or {}).get("text") or "")) + "</tr>"
            for one in self.findings)
        open_ = "; ".join(html.escape(one["what"]) for one in self.unjudged)
        return (f"<p><b>{html.escape(self.verdict)}</b> at depth {html.escape(self.depth)}"
                + (f". Not checked: {open_}" if open_ else "") + "</p>"
                + ("<table><tr><th>severity<th>rule<th>where<th>cause<th>remedy</tr>" + rows
                   + "</table>" if rows else ""))
