"""Findings as plain objects."""

import collections

# A dataclass would cost 10 ms at import.
_FIELDS = ["rule", "severity", "subjects", "cause", "consequence", "evidence", "remedy"]


class Finding(collections.namedtuple("Finding", _FIELDS)):
    __slots__ = ()

    def __str__(self):
        return f"{self.severity} {self.rule}: {self.cause}"


def _first_of(subjects, shown=3):
    more = len(subjects) - shown
    return ", ".join(map(str, subjects[:shown])) + (f" and {more} more" if more > 0 else "")


class Report:
    """What a check found. It is true where nothing was found at or above a warning."""

    def __init__(self, answer):
        self.answer = answer
        self.verdict, self.depth = answer["verdict"], answer["depth"]
        self.unjudged = answer["unjudged"]
        self.findings = [
            Finding(one["rule"], one["severity"], tuple(one.get("subjects") or ()), one["cause"],
                    one.get("consequence") or "", one.get("evidence") or {},
                    one.get("remedy") or {})
            for one in answer["findings"]]

    def __bool__(self):
        return self.verdict == "clean"

    def __iter__(self):
        return iter(self.findings)

    def __len__(self):
        return len(self.findings)

    def __repr__(self):
        return f"<shardwright.Report {self.verdict}: {len(self)} findings, depth {self.depth}>"

    def columns(self):
        """For pandas and polars."""
        return {"rule": [one.rule for one in self.findings],
                "severity": [one.severity for one in self.findings],
                "subjects": [list(one.subjects) for one in self.findings],
                "cause": [one.cause for one in self.findings]}

    def _repr_html_(self):
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
