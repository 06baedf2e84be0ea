"""Read the text of any other command: its lines with a file and a line number, else its end."""

import re
from collections.abc import Iterator

from handrail.tools.reports.issue import Issue, IssueKind, Severity
from handrail.tools.reports.report import Reading, Report, clean_text, number, reading
from handrail.tools.tool import strip_control_codes

PLACE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*\.\w+)[:(](?P<line>\d+)(?:[:,](?P<column>\d+))?\)?:\s*(?P<message>\S.*)$",
    re.MULTILINE,
)
WARNING = re.compile(r"^warning\b", re.IGNORECASE)
MAX_TAIL = 600
MAX_PLACES = 200


def plain_text(report: Report, kind: IssueKind) -> Reading:
    """Lines such as `src/main.c:4:2: error: ...` about files of the tree; none if it succeeded."""
    if report.code == 0:
        return Reading()

    def issues() -> Iterator[Issue]:
        found = 0
        for each in PLACE.finditer(report.text):
            path = report.path(each["path"])
            if report.has_file(path) and found < MAX_PLACES:
                found += 1
                message = clean_text(each["message"])
                grave: Severity = "low" if WARNING.match(message) else "high"
                yield Issue(kind, grave, message, path, number(each["line"]), number(each["column"]))

    return reading(issues())


def last_words(report: Report) -> str:
    """The end of what a command printed, for an error that nothing else explains."""
    lines = strip_control_codes(report.output[-8_000:].decode(errors="replace")).splitlines()
    kept: list[str] = []
    for line in reversed(lines):
        if sum(map(len, kept)) + len(line) > MAX_TAIL and kept:
            break
        if line.strip():
            kept.append(line.rstrip())
    return "\n".join(reversed(kept))[-MAX_TAIL:]
