"""`handrail status`: what was built, what failed, what is open."""

import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import ask_app, workspace_option
from handrail.interfaces.cli.render.build_lines import STYLES
from handrail.interfaces.cli.render.checklist_lines import STATE_COLUMNS, phase_lines
from handrail.interfaces.cli.render.styles import INDENT, Line, line, one_line, wrap
from handrail.interfaces.cli.terminal import is_terminal, print_json, print_lines, print_text, terminal_width
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.builds.status import BuildState, ChecklistState

MAX_OPEN = 10
ADVICE = {
    "paused": "handrail resume {session} shows the plan and asks",
    "escalated": "answer it in the task, and build again",
}
ACCEPT = "handrail build --accept {session} shows and applies its files: {files}"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object.")
@workspace_option
def command(as_json: bool, **given: Any) -> None:
    """What was built here, what failed or waits for you, and what is open in checklists."""
    from handrail.app.builds.status import work_status

    found = ask_app(given, work_status)
    width = terminal_width(sys.stdout)
    if as_json:
        print_json(to_dict(found), indent=2)
        return
    rows = [row for build in found.builds for row in build_lines(build, width)]
    rows += [row for checklist in found.checklists for row in checklist_lines(checklist, width)]
    print_lines(rows, colour=is_terminal(sys.stdout))
    if not rows:
        print_text('Nothing was built here yet: handrail build "TASK", or handrail do FILE')


def build_lines(build: "BuildState", width: int) -> list[Line]:
    state = (STYLES.get(build.state, "bad"), f"{build.state:<{STATE_COLUMNS}}")
    files = ("dim", f"  {one_line(', '.join(build.files))}")
    rows = wrap(line(state, one_line(build.task.splitlines()[0]), files), width, INDENT)
    told = build.detail.splitlines()[:1] if build.state != "complete" else []
    told += [ADVICE[build.state].format(session=build.session_id)] if build.state in ADVICE else []
    if build.proposed:
        told.append(ACCEPT.format(session=build.session_id, files=", ".join(build.proposed)))
    for text in told:
        rows += wrap(line(INDENT, ("dim", one_line(text))), width, INDENT * 2)
    return rows


def checklist_lines(checklist: "ChecklistState", width: int) -> list[Line]:
    stopped = "; a run was stopped, the same command goes on" if checklist.stopped else ""
    told = checklist.problem or f"{len(checklist.open)} open{stopped}"
    rows = wrap(line(("bold", one_line(checklist.path)), f": {one_line(told)}"), width, INDENT)
    rows += phase_lines(checklist.phases, width) if checklist.phases else []
    for item in checklist.open[:MAX_OPEN]:
        rows += wrap(line(("dim", f"{INDENT * 2}{item.number:>3}  {one_line(item.text)}")), width, INDENT * 4)
    left = len(checklist.open) - MAX_OPEN
    return [*rows, line(("dim", f"{INDENT * 2}{left} more"))] if left > 0 else rows
