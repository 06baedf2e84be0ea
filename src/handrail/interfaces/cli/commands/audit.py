"""`handrail audit`: every request to a model with its raw answer and what was understood of it."""

import base64
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.completion import complete_session
from handrail.interfaces.cli.options import ask_app, workspace_option
from handrail.interfaces.cli.render.styles import Line, clean, fit, format_usage, format_usd, line, one_line
from handrail.interfaces.cli.terminal import (
    is_terminal,
    page,
    print_bytes,
    print_json,
    print_text,
    terminal_width,
    use_colour,
)
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app.app import App
    from handrail.app.history.audit import AuditedCall, AuditedRequest, RawExchange, StructuredAnswer

INDENT = " " * 5
GONE = "no longer stored, or never was"
LISTED = ("sections", "todos", "changes", "commands", "next_steps")


@click.command()
@click.argument("session", default="", shell_complete=complete_session)
@click.option("--raw", "number", type=click.IntRange(min=1), metavar="N", help="The bytes of request N.")
@click.option("--json", "as_json", is_flag=True, help="One request a line, as JSON.")
@workspace_option
def command(session: str, number: int | None, as_json: bool, **given: Any) -> None:
    """List the requests of the last session, or of the one named: what was sent, answered and understood.

    With --raw N a pipe gets the exact bytes: the body of the request on the first line, then the answer as it
    came. A terminal gets the same as text.
    """

    def look(app: "App") -> tuple[list[Line], bool]:
        from handrail.app.history.audit import audit_requests, exchange_of, numbered_request

        found = audit_requests(app, app.find_session(session))
        if number is not None:
            request = numbered_request(found, number)
            return _raw(request, exchange_of(app, request), as_json=as_json), False
        if as_json:
            from msgspec import to_builtins

            for request in found:
                print_json(to_builtins(request))
            return [], False
        if not found:
            print_text("No model was asked in this session yet.", file=sys.stderr)
        width = terminal_width(sys.stdout)
        rows = [row for request in found for row in request_lines(request, width)]
        return rows, use_colour(sys.stdout, app.settings.display)

    rows, colour = ask_app(given, look)
    page(rows, colour=colour)


def request_lines(request: "AuditedRequest", width: int) -> list[Line]:
    """What was asked, how it ended, and what was understood, one fact a line."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(request.at))
    cost = format_usd(request.cost_usd) if request.finish != "open" else ""
    again = f" attempt {request.attempt}" if request.attempt > 1 else ""
    what = f"turn {request.turn}  {request.purpose}{again}  {request.finish}"
    head = f"{when}  {one_line(request.model)}  {what}  {format_usage(request.usage)}  {cost}"
    rows = [line(("accent", f"{request.number:>3}  "), fit(head, width - len(INDENT)))]
    facts = [
        ("problem", request.problem),
        ("text", request.text),
        *(
            ("call", f"{call.name} {json.dumps(call.arguments)}: {call.status}")
            for call in request.calls.values()
        ),
        *(("not run", each) for each in request.blocked),
        *structured_facts("", request.structured),
        *structured_facts("recovered ", request.recovered),
        *(("unread", each) for each in request.unread),
        ("read", ", ".join(request.read)),
        *(("edit", path) for path in dict.fromkeys(request.edits)),
        *(("refused", each) for each in request.refusals),
        ("pruned", ", ".join(request.pruned)),
    ]
    for name, text in facts:
        if shown := one_line(text):
            rows.append(line(("dim", f"{INDENT}{name:<10} "), fit(shown, width - len(INDENT) - 11)))
    return rows


def call_words(call: "AuditedCall") -> str:
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}: {call.status}"


def structured_facts(mark: str, answer: "StructuredAnswer | None") -> list[tuple[str, str]]:
    counts = [(name, len(getattr(answer, name))) for name in LISTED] if answer else []
    told = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts if count)
    return [(f"{mark}parts", told)] if told else []


def _raw(request: "AuditedRequest", raw: "RawExchange", *, as_json: bool) -> list[Line]:
    if as_json:
        texts = _as_text("request", raw.request) | _as_text("answer", raw.answer)
        print_json({"number": request.number, **texts})
        return []
    parts = {"request": raw.request, "answer": raw.answer}
    if is_terminal(sys.stdout):
        return [
            row
            for name, data in parts.items()
            for row in (line(("bold", name)), *([line(GONE)] if data is None else _text_lines(data)))
        ]
    if raw.request is None and raw.answer is None:
        raise UsageProblem(f"Request {request.number} and its answer: {GONE}.")
    for name in (name for name, data in parts.items() if data is None):
        print_text(f"handrail: {name} {request.number}: {GONE}.", file=sys.stderr)
    print_bytes((raw.request or b"") + b"\n" + (raw.answer or b""))
    return []


def _text_lines(data: bytes) -> list[Line]:
    return [line(clean(text)) for text in data.decode(errors="backslashreplace").splitlines()]


def _as_text(name: str, data: bytes | None) -> dict[str, str | None]:
    """The bytes as a JSON value: as text, or in base64 if they are not UTF-8."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data or b"").decode()}
