"""`handrail intents`: list, show, create, edit and check the intents of a workspace."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from handrail.interfaces.cli.completion import complete_intent
from handrail.interfaces.cli.options import ask_app, workspace_option
from handrail.interfaces.cli.render.styles import count_of, shorten
from handrail.interfaces.cli.terminal import confirm, is_terminal, print_json, print_text
from handrail.protocol.errors import IntentsProblem, UsageProblem
from handrail.protocol.events import IntentEdited, Recorded
from handrail.protocol.intent import Intent
from handrail.protocol.values import to_dict

if TYPE_CHECKING:
    from handrail.app.intents import IntentList, IntentProblems, WorkspaceIntents

Result = TypeVar("Result")
STATUS_PROBLEMS = 1
NEXT_STEP_HINT = 'Now make one: `handrail intents new INT-1 --name "..." --scope "src/**"`.'
SCOPE_CHARS = 60
TEMPLATES = ("bugfix", "feature", "refactor")


def intent_list_lines(found: "IntentList") -> list[str]:
    states = ["ignored" if each.id in found.ignored else each.status or "active" for each in found.intents]
    id_width, width = (
        max((len(each.id) for each in found.intents), default=0),
        max(map(len, states), default=0),
    )
    lines = []
    for each, state in zip(found.intents, states, strict=True):
        owned = shorten(", ".join(each.scope) or "nothing", SCOPE_CHARS)
        name = f"{each.name}  " if each.name else ""
        lines.append(f"{each.id:<{id_width}}  {state:<{width}}  {name}[{owned}]")
    return lines


def intent_json(intent: Intent, *, ignored: bool) -> dict[str, Any]:
    return {
        "id": intent.id,
        "name": intent.name,
        "status": intent.status,
        "done": intent.done,
        "ignored": ignored,
        "owned_scope": list(intent.scope),
        "constraints": list(intent.constraints),
        "acceptance_criteria": list(intent.criteria),
        "depends_on": list(intent.depends_on),
        "version": intent.sha256,
    }


def intent_details(intent: Intent, problems: "IntentProblems", *, ignored: bool) -> list[str]:
    """The intent as it is written, then what stands in its way."""
    notes = ["In .intentignore: nothing is done for it."] if ignored else []
    notes += [each for each in (*problems.wrong, *problems.waiting) if each.startswith(f"{intent.id} ")]
    notes += [each.message for each in problems.conflicts if intent.id in (each.one, each.other)]
    return [*intent.text.rstrip("\n").split("\n"), *([""] if notes else []), *notes]


def version_lines(edits: Sequence[Recorded]) -> list[str]:
    lines = []
    for one in edits:
        if isinstance(one.event, IntentEdited):
            at = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at))
            why = f": {one.event.why}" if one.event.why else ""
            lines += ["", f"{at} by {one.event.by}{why}"]
            lines += [f"    {text}" for text in one.event.old.rstrip("\n").split("\n") if one.event.old]
    return lines


def with_intents(given: dict[str, Any], do: "Callable[[WorkspaceIntents], Result]") -> Result:
    return ask_app(given, lambda app: do(app.intents))


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """The intents of this workspace: what changes belong to, and which files each may change.

    They are in .orchestration/active_intents.yaml; docs/intents.md describes it. Without that file no intent
    is needed.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_intents, as_json=False)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One intent a line, as JSON.")
@click.pass_obj
def list_intents(given: dict[str, Any], as_json: bool) -> None:
    """List the intents with their status and scope."""
    found = with_intents(given, lambda intents: intents.now())
    if as_json:
        for intent in found.intents:
            print_json(intent_json(intent, ignored=intent.id in found.ignored))
        return
    if not found.intents:
        print_text(f"There is no intent yet. {NEXT_STEP_HINT}", file=sys.stderr)
    for text in intent_list_lines(found):
        print_text(text)


@command.command()
@click.argument("intent_id", metavar="ID", shell_complete=complete_intent)
@click.option("--versions", is_flag=True, help="Also its edits, oldest first, with each old text.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def show(given: dict[str, Any], intent_id: str, versions: bool, as_json: bool) -> None:
    """Show one intent as it is written, and what stands in its way."""

    def look(intents: "WorkspaceIntents") -> list[str]:
        intent, ignored = intents.find(intent_id), intent_id in intents.now().ignored
        edits = list(intents.versions(intent_id)) if versions else []
        if as_json:
            row = intent_json(intent, ignored=ignored) | {"text": intent.text}
            if versions:
                row["versions"] = [to_dict(one.event) | {"at": one.at} for one in edits]
            return [json.dumps(row)]
        problems = intents.problems()
        return [*intent_details(intent, problems, ignored=ignored), *version_lines(edits)]

    for text in with_intents(given, look):
        print_text(text)


@command.command()
@click.pass_obj
def init(given: dict[str, Any]) -> None:
    """Start using intents: write the file, with an example in its comments."""
    from handrail.app.intents import EXAMPLE

    with_intents(given, lambda intents: intents.init(EXAMPLE))
    print_text("Wrote .orchestration/active_intents.yaml: from now on every change here needs an intent.")
    print_text(NEXT_STEP_HINT)


@command.command()
@click.argument("intent_id", metavar="ID", shell_complete=complete_intent)
@click.option("--name", default="", help="What it is about, in a few words.")
@click.option("--template", type=click.Choice(TEMPLATES), help="What it starts with.")
@click.option("--scope", metavar="PATTERN", multiple=True, help="A path or glob that it owns; repeatable.")
@click.option("--constraint", metavar="TEXT", multiple=True, help="A rule for the work; repeatable.")
@click.option("--criterion", metavar="TEXT", multiple=True, help="What makes it done; repeatable.")
@click.option("--depends-on", metavar="ID", multiple=True, help="An intent to finish first; repeatable.")
@click.pass_obj
def new(given: dict[str, Any], /, intent_id: str, template: str | None, **fields: Any) -> None:
    """Add an intent, from a template or from nothing."""
    from handrail.app.intents import add_intent

    with_intents(given, lambda intents: add_intent(intents, intent_id, template=template, **fields))
    print_text(f"Added {intent_id}.")
    if not fields["scope"]:
        print_text(f'It owns nothing yet: `handrail intents edit {intent_id} --add-scope "src/**"`.')


@command.command()
@click.argument("intent_id", metavar="ID", shell_complete=complete_intent)
@click.option("--set", "values", metavar="KEY=VALUE", multiple=True, help="Set a key; lists with commas.")
@click.option("--scope", metavar="PATTERN", multiple=True, help="Own exactly these; repeatable.")
@click.option("--add-scope", metavar="PATTERN", multiple=True, help="Own this too; repeatable.")
@click.pass_obj
def edit(given: dict[str, Any], /, intent_id: str, **wanted: Any) -> None:
    """Change one intent by options, or in $EDITOR where none is given. The old text is kept."""
    pairs = []
    for each in wanted["values"]:
        key, _, value = map(str.strip, each.partition("="))
        if not key or "=" not in each:
            raise UsageProblem(f"{each!r} is not KEY=VALUE, such as --set status=active.")
        pairs.append((key, value))

    def change(intents: "WorkspaceIntents") -> bool:
        before = intents.find(intent_id).text
        for key, value in pairs:
            intents.set_value(intent_id, key, value)
        if wanted["scope"]:
            intents.set_scope(intent_id, wanted["scope"])
        if wanted["add_scope"]:
            intents.add_scope(intent_id, wanted["add_scope"])
        if not (pairs or wanted["scope"] or wanted["add_scope"]):
            edit_text(intents, intent_id, before)
        return intents.find(intent_id).text != before

    changed = with_intents(given, change)
    print_text(f"Changed {intent_id}." if changed else f"{intent_id} is as it was.")


def edit_text(intents: "WorkspaceIntents", intent_id: str, text: str) -> None:
    """Change an intent in the user's editor; offers it again where the text is not valid."""
    while (edited := click.edit(text, extension=".yaml")) is not None:
        try:
            intents.set_text(intent_id, edited)
        except (IntentsProblem, UsageProblem) as problem:
            if not is_terminal(sys.stdin):
                raise
            print_text(str(problem), file=sys.stderr)
            if not confirm("Edit it again?", default=True, err=True):
                raise
            text = edited
        else:
            return


@command.command()
@click.argument("intent_id", metavar="ID", shell_complete=complete_intent)
@click.pass_obj
def done(given: dict[str, Any], intent_id: str) -> None:
    """Mark an intent as done: nothing may be written for it any more."""
    with_intents(given, lambda intents: intents.set_value(intent_id, "status", "done", why="done"))
    print_text(f"{intent_id} is done.")


@command.command()
@click.option("--accept", nargs=2, metavar="ID ID", help="Record that these two may own the same files.")
@click.pass_obj
def check(given: dict[str, Any], accept: tuple[str, str] | None) -> int:
    """Check the file, the dependencies and whether two intents own the same files.

    Exits with 0 where nothing is wrong, with 1 otherwise.
    """
    from handrail.app.intents import ordering_command

    def look(intents: "WorkspaceIntents") -> int:
        if accept:
            intents.accept(*accept)
        found = intents.problems()
        for text in (*found.wrong, *(each.message for each in found.conflicts)):
            print_text(text)
        for each in found.conflicts[:1]:
            print_text(f"  narrow one   handrail intents edit {each.other} --scope ...")
            print_text(f"  let it wait  {ordering_command(each, intents.now().intents)}")
            print_text(f"  accept it    handrail intents check --accept {each.one} {each.other}")
        for text in found.waiting:
            print_text(text)
        if not found.wrong and not found.conflicts:
            print_text(f"{count_of(len(intents.now().intents), 'intent')}, nothing wrong.")
        return STATUS_PROBLEMS if found.wrong or found.conflicts else 0

    return with_intents(given, look)


@command.command("map")
@click.pass_obj
def write_map(given: dict[str, Any]) -> None:
    """Write .orchestration/intent_map.md: which files each intent has changed, by the trace."""
    count = with_intents(given, lambda intents: intents.write_map(time.time()))
    print_text(f"Wrote .orchestration/intent_map.md: {count_of(count, 'file')}.")
