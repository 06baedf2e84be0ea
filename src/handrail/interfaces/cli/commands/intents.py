"""`handrail intents`: the pieces of work that changes here belong to."""

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from handrail.interfaces.cli.intent_lines import EXAMPLE, TEMPLATES, as_json, listed, shown, version_lines
from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import options_for, workspace_option
from handrail.interfaces.cli.styles import clean
from handrail.interfaces.cli.terminal import is_terminal
from handrail.protocol.errors import IntentsProblem, UsageProblem

if TYPE_CHECKING:
    from handrail.engine.intents import IntentBook

Result = TypeVar("Result")
PROBLEMS = 1
NEXT = 'Now make one: `handrail intents new INT-1 --name "..." --scope "src/**"`.'


def with_intents(given: dict[str, Any], do: "Callable[[IntentBook], Result]") -> Result:
    """What a function makes of the intents of the workspace."""
    import anyio

    async def run() -> Result:
        async with opened(options_for(given)) as app:
            return do(app.intents)

    return anyio.run(run)


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """The intents of this workspace: what changes belong to, and which files each may change.

    They stand in .orchestration/active_intents.yaml; docs/intents.md says how. Without that file nothing here
    asks for an intent.
    """
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        show_list(given, as_lines=False)


@command.command("list")
@click.option("--json", "json_lines", is_flag=True, help="One intent a line, as JSON.")
@click.pass_obj
def list_them(given: dict[str, Any], json_lines: bool) -> None:
    """List the intents with their status and scope."""
    show_list(given, as_lines=json_lines)


def show_list(given: dict[str, Any], *, as_lines: bool) -> None:
    found = with_intents(given, lambda intents: intents.now())
    if as_lines:
        for intent in found.intents:
            print(json.dumps(as_json(intent, ignored=intent.id in found.ignored)))
        return
    if not found.intents:
        print(f"There is no intent yet. {NEXT}", file=sys.stderr)
    for text in listed(found):
        print(clean(text))


@command.command()
@click.argument("intent_id", metavar="ID")
@click.option("--versions", is_flag=True, help="Also how it was edited, oldest first, with each old text.")
@click.option("--json", "json_line", is_flag=True, help="As JSON.")
@click.pass_obj
def show(given: dict[str, Any], intent_id: str, versions: bool, json_line: bool) -> None:
    """Show one intent as it is written, and what stands in its way."""

    def look(intents: "IntentBook") -> list[str]:
        intent, ignored = intents.find(intent_id), intent_id in intents.now().ignored
        edits = list(intents.versions(intent_id)) if versions else []
        if json_line:
            told = as_json(intent, ignored=ignored) | {"text": intent.text}
            if versions:
                told["versions"] = [one.event.model_dump(mode="json") | {"at": one.at} for one in edits]
            return [json.dumps(told)]
        problems = intents.problems()
        return [*shown(intent, problems, ignored=ignored), *version_lines(edits)]

    for text in with_intents(given, look):
        print(text if json_line else clean(text))


@command.command()
@click.pass_obj
def init(given: dict[str, Any]) -> None:
    """Begin with intents: write the file, with an example in its comments."""
    with_intents(given, lambda intents: intents.init(EXAMPLE))
    print("Wrote .orchestration/active_intents.yaml: from now on every change here needs an intent.")
    print(NEXT)


@command.command()
@click.argument("intent_id", metavar="ID")
@click.option("--name", default="", help="What it is about, in a few words.")
@click.option("--template", type=click.Choice(tuple(TEMPLATES)), help="What it begins with.")
@click.option("--scope", metavar="PATTERN", multiple=True, help="A path or glob that it owns; repeatable.")
@click.option("--constraint", metavar="TEXT", multiple=True, help="What has to be kept; repeatable.")
@click.option("--criterion", metavar="TEXT", multiple=True, help="What makes it done; repeatable.")
@click.option("--depends-on", metavar="ID", multiple=True, help="An intent to be done before; repeatable.")
@click.pass_obj
def new(given: dict[str, Any], /, intent_id: str, template: str | None, **fields: Any) -> None:
    """Add an intent, from a template or from nothing."""
    begun = TEMPLATES[template] if template else {"constraints": (), "acceptance_criteria": ()}
    values: dict[str, Any] = {
        "name": fields["name"],
        "status": "active",
        "owned_scope": fields["scope"],
        "constraints": (*begun["constraints"], *fields["constraint"]),
        "acceptance_criteria": (*begun["acceptance_criteria"], *fields["criterion"]),
        "depends_on": fields["depends_on"],
    }
    wanted = {key: value for key, value in values.items() if value or key == "owned_scope"}
    with_intents(given, lambda intents: intents.new(intent_id, wanted))
    print(f"Added {intent_id}.")
    if not fields["scope"]:
        print(f'It owns nothing yet: `handrail intents edit {intent_id} --add-scope "src/**"`.')


@command.command()
@click.argument("intent_id", metavar="ID")
@click.option("--set", "values", metavar="KEY=VALUE", multiple=True, help="Set a key; lists with commas.")
@click.option("--scope", metavar="PATTERN", multiple=True, help="Own exactly these; repeatable.")
@click.option("--add-scope", metavar="PATTERN", multiple=True, help="Own this too; repeatable.")
@click.pass_obj
def edit(given: dict[str, Any], /, intent_id: str, **wanted: Any) -> None:
    """Change one intent by options, or in $EDITOR where none is given. The old text is kept."""
    pairs = [pair_of(each) for each in wanted["values"]]

    def change(intents: "IntentBook") -> bool:
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
    print(f"Changed {intent_id}." if changed else f"{intent_id} is as it was.")


def edit_text(intents: "IntentBook", intent_id: str, text: str) -> None:
    """Change an intent in the user's editor, again where what was written there cannot be taken."""
    while (edited := click.edit(text, extension=".yaml")) is not None:
        try:
            intents.set_text(intent_id, edited)
        except (IntentsProblem, UsageProblem) as problem:
            if not is_terminal(sys.stdin):
                raise
            print(clean(str(problem)), file=sys.stderr)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise
            text = edited
        else:
            return


def pair_of(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise UsageProblem(f"{text!r} is no KEY=VALUE, such as --set status=active.")
    return key.strip(), value.strip()


@command.command()
@click.argument("intent_id", metavar="ID")
@click.pass_obj
def done(given: dict[str, Any], intent_id: str) -> None:
    """Say that an intent is done: nothing is written for it any more."""
    with_intents(given, lambda intents: intents.set_value(intent_id, "status", "done", why="done"))
    print(f"{intent_id} is done.")


@command.command()
@click.option("--accept", nargs=2, metavar="ID ID", help="Record that these two may own the same files.")
@click.pass_obj
def check(given: dict[str, Any], accept: tuple[str, str] | None) -> int:
    """Check the file, the dependencies and whether two intents own the same files.

    Ends with 0 where nothing has to be done about them, with 1 otherwise.
    """

    from handrail.policy.intent_relations import put_behind

    def look(intents: "IntentBook") -> int:
        if accept:
            intents.accept(*accept)
        found = intents.problems()
        for text in (*found.wrong, *(each.told for each in found.conflicts)):
            print(clean(text))
        for each in found.conflicts[:1]:
            print(f"  narrow one   handrail intents edit {each.other} --scope ...")
            print(f"  let it wait  {clean(put_behind(each, intents.now().intents))}")
            print(f"  accept it    handrail intents check --accept {each.one} {each.other}")
        for text in found.waiting:
            print(clean(text))
        if not found.wrong and not found.conflicts:
            count = len(intents.now().intents)
            print(f"{count} intent{'s' * (count != 1)}, nothing wrong.")
        return PROBLEMS if found.wrong or found.conflicts else 0

    return with_intents(given, look)


@command.command("map")
@click.pass_obj
def write_map(given: dict[str, Any]) -> None:
    """Write .orchestration/intent_map.md: which files each intent has touched, by the trace."""
    count = with_intents(given, lambda intents: intents.write_map(time.time()))
    print(f"Wrote .orchestration/intent_map.md: {count} file{'s' * (count != 1)}.")
