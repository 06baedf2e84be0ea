"""`handrail trace`: verify the trace, blame lines, report counts, export it."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import ask_app, run_with_app, user_path, workspace_option
from handrail.interfaces.cli.render.styles import Line, count_of, fit, line
from handrail.interfaces.cli.terminal import page, print_data, print_json, print_text
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.history.changes import BlamedLine, Count, ExportFormat, Report, TraceCheck

UNKNOWN_AUTHOR = "-"
MAX_COLUMN = 32


def verify_lines(found: "TraceCheck") -> list[Line]:
    rows = []
    for finding in found.findings:
        at = f"line {finding.line}: " if finding.line and finding.kind not in ("cut off", "removed") else ""
        rows.append(f"{at}{finding.kind}: {finding.what}")
    rows += found.elsewhere
    if others := found.verified.others:
        some = f"{', '.join(others[:3])}{', ...' * (len(others) > 3)}"
        rows.append(
            f"{count_of(len(others), 'writer')} not in this workspace's log ({some}): their chains are"
            " checked, but not whether lines are missing at their ends."
        )
    if found.completed:
        rows.append(f"{count_of(found.completed, 'line')} missing after a crash: written now.")
    if found.undecided:
        rows.append(
            f"{count_of(found.undecided, 'unfinished change set')}: the next change completes the trace."
        )
    if found.restored:
        rows.append(f"{count_of(found.restored, 'line')} restored.")
    result = count_of(len(found.findings), "problem") if found.findings else "unchanged since written"
    rows.append(f"{count_of(found.verified.lines, 'line')}, {result}.")
    return [line(text) for text in rows]


def blame_lines(lines: "Sequence[BlamedLine]") -> list[Line]:
    authors = [_author(each) for each in lines]
    widths = [min(MAX_COLUMN, max(map(len, column))) for column in zip(*authors, strict=True)]
    digits = len(str(lines[-1].number)) if lines else 1
    rows = []
    for each, author in zip(lines, authors, strict=True):
        cells = [f"{fit(text, width):<{width}}" for text, width in zip(author, widths, strict=True)]
        text = f"  {each.text.decode(errors='replace')}".rstrip()
        rows.append(line(f"{each.number:>{digits}}  {'  '.join(cells)}{text}"))
    return rows


def _author(each: "BlamedLine") -> tuple[str, str, str]:
    author = each.author
    if author is None:
        return UNKNOWN_AUTHOR, UNKNOWN_AUTHOR, UNKNOWN_AUTHOR
    turn = f"{author.session_id} turn {author.turn}" if author.turn else author.session_id
    model = author.model if author.by == "agent" else f"({author.by})"
    return author.intent_id or UNKNOWN_AUTHOR, turn or UNKNOWN_AUTHOR, model or UNKNOWN_AUTHOR


def report_lines(found: "Report") -> list[Line]:
    """A table each for intents, classes and models; nothing where nothing was changed."""
    if not found.total.changes:
        return []
    rows: list[Line] = []
    for name, counts in (("intent", found.intents), ("class", found.classes), ("model", found.models)):
        rows += [*_table(name, counts), line("")]
    rows += _table("", {"all": found.total})[1:]
    if found.problems:
        changes = count_of(found.problems, "change")
        rows.append(line(f"{changes} declared as a refactor but not confirmed as one."))
    return rows


def _table(name: str, counts: "Mapping[str, Count]") -> list[Line]:
    rows = [f"{name:<{MAX_COLUMN}} {'changes':>8} {'files':>6} {'lines':>8} {'rework':>8} {'undone':>8}"]
    for key, each in sorted(counts.items(), key=lambda item: -item[1].lines):
        rows.append(
            f"{fit(key or UNKNOWN_AUTHOR, MAX_COLUMN):<{MAX_COLUMN}}"
            f" {len(each.changes):>8,} {len(each.files):>6,}"
            f" {each.lines:>8,} {each.rewritten:>8,} {each.taken_back:>8,}"
        )
    return [line(row) for row in rows]


def report_json(found: "Report") -> dict[str, Any]:
    def counts(each: "Count") -> dict[str, int]:
        return {
            "changes": len(each.changes),
            "files": len(each.files),
            "lines": each.lines,
            "rework": each.rewritten,
            "taken_back": each.taken_back,
        }

    parts = {"intents": found.intents, "classes": found.classes, "models": found.models}
    tables = {part: {name: counts(each) for name, each in rows.items()} for part, rows in parts.items()}
    return {**tables, "mutation_problems": found.problems, "total": counts(found.total)}


json_option = click.option("--json", "as_data", is_flag=True, help="As JSON, for other programs.")


@click.group()
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Which intent, turn and model wrote what, and whether that record is intact."""
    ctx.obj = given


@command.command()
@click.option("--restore", is_flag=True, help="Restore lines that were cut off, from the log.")
@json_option
@click.pass_obj
def verify(given: dict[str, Any], /, restore: bool, as_data: bool) -> int:
    """Check every line of .orchestration/agent_trace.jsonl; exits with 1 where one was altered or is missing.

    Lines are named by their number in the file. A line that only another branch has is not an error.
    """

    async def run(app: "App") -> "TraceCheck":
        return await app.trace.verify(restore=restore)

    found = run_with_app(given, run)
    if as_data:
        row = {
            "lines": found.verified.lines,
            "known": found.verified.own,
            "other_writers": list(found.verified.others),
            "problems": [finding._asdict() for finding in found.findings],
            "elsewhere": list(found.elsewhere),
            "completed": found.completed,
            "restored": found.restored,
            "undecided": found.undecided,
        }
        print_json(row, indent=2)
    else:
        page(verify_lines(found), colour=False)
    return 1 if found.findings else 0


@command.command()
@click.argument("place", metavar="FILE[:LINE]")
@click.option("--from", "export", metavar="EXPORT", help="As an export has it, instead of this log.")
@json_option
@click.pass_obj
def blame(given: dict[str, Any], /, place: str, export: str | None, as_data: bool) -> None:
    """Show which intent, turn and model wrote each line of a file, or one line of it.

    Moved lines keep their author. `-` means that no agent wrote it: you, for example.
    """
    source = user_path(export) if export else None
    name, _, number = place.rpartition(":")
    numbered = bool(name) and number.isdecimal()

    def look(app: "App") -> "tuple[list[BlamedLine], int | None]":
        if not numbered or app.trace.has(place):  # a file may have a name that ends like that
            return app.trace.blame(place, source), None
        return app.trace.blame(name, source), int(number)

    lines, wanted = ask_app(given, look)
    if wanted is not None:
        if not 1 <= wanted <= len(lines):
            raise UsageProblem(f"{name} has {count_of(len(lines), 'line')}: there is no line {number}.")
        lines = [lines[wanted - 1]]
    if as_data:
        for each in lines:
            author, text = each.author._asdict() if each.author else None, each.text.decode(errors="replace")
            print_json({"line": each.number, "text": text, "author": author})
    else:
        page(blame_lines(lines), colour=False)


@command.command()
@click.option(
    "--format",
    "wanted",
    type=click.Choice(["agent-trace", "flat"]),
    default="agent-trace",
    show_default=True,
    help="Agent Trace records, or the flat entries of the intent design.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
@click.pass_obj
def export(given: dict[str, Any], /, wanted: "ExportFormat", output: str | None) -> None:
    """Write all changes with their lines as they are now, one JSON object per line.

    `handrail trace blame --from FILE` reads both formats, for example in a clone of the repository.
    """

    def write(app: "App") -> None:
        if output:
            app.trace.write_export(user_path(output), wanted)
            return
        for each in app.trace.export(wanted):
            print_data(each)

    ask_app(given, write)


@command.command()
@json_option
@click.pass_obj
def report(given: dict[str, Any], /, as_data: bool) -> None:
    """Count changes, lines and rework by intent, by class and by model."""
    found = ask_app(given, lambda app: app.trace.report())
    if as_data:
        print_json(report_json(found), indent=2)
        return
    rows = report_lines(found)
    if not rows:
        print_text("Nothing was changed here yet.", file=sys.stderr)
    page(rows, colour=False)
