"""`handrail config`: show, get, set and check settings, and where each was set."""

import os
import sys
from typing import Any

import click

from handrail.config.layers import LoadedSettings, check_settings, load_settings, shown_settings, shown_value
from handrail.config.places import find_places
from handrail.config.toml_edit import save_setting, toml_value
from handrail.interfaces.cli.commands.setup.model import show_model
from handrail.interfaces.cli.options import user_path, workspace_option, workspace_path
from handrail.interfaces.cli.render.styles import clean, one_line
from handrail.interfaces.cli.terminal import print_text
from handrail.protocol.errors import ConfigProblem, UsageProblem

STATUS_PROBLEMS = 1


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Show all settings; get, set or check them."""
    ctx.obj = given
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@command.command()
@click.pass_obj
def show(given: dict[str, Any], /) -> None:
    """Every setting, its value and where it was set."""
    loaded = load_workspace_settings(given)
    rows = [
        (clean(row.key), clean(toml_value(row.value)), clean(row.where)) for row in shown_settings(loaded)
    ]
    key_width = max(len(key) for key, _, _ in rows)
    value_width = min(30, max(len(value) for _, value, _ in rows))
    for key, value, where in rows:
        print_text(f"{key:<{key_width}}  {value:<{value_width}}  {where}")
    for each in loaded.ignored:
        print_text(f"handrail: {each.file}: {each.key} is ignored: {each.why}", file=sys.stderr)


@command.command()
@click.argument("key")
@click.pass_obj
def get(given: dict[str, Any], /, key: str) -> None:
    """The value of KEY, such as limits.usd."""
    values = {row.key: row.value for row in shown_settings(load_workspace_settings(given))}
    if key not in values:
        raise UsageProblem(f"There is no setting {key}. `handrail config` lists them.")
    print_text(toml_value(values[key]))


@command.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@click.pass_obj
def set_key(given: dict[str, Any], /, key: str, value: str) -> None:
    """Set KEY to VALUE in your settings file."""
    if key == "models.main":
        show_model(value, given)
        return
    places = find_places(os.environ)
    saved = save_setting(places, key, value)
    print_text(f"{key} = {toml_value(shown_value(key, saved))} in {places.settings}")
    try:
        load_workspace_settings(given)
    except ConfigProblem as problem:
        print_text(f"handrail: Still to be fixed: {problem}", file=sys.stderr)


@command.command()
@click.argument("file", required=False)
@click.pass_obj
def validate(given: dict[str, Any], /, file: str | None) -> int:
    """Check your settings and those of this folder, or FILE alone.

    Each problem is shown with file, line and the closest valid key. Exits with 0 where nothing is wrong, with
    1 otherwise.
    """
    named = user_path(file) if file else None
    found = check_settings(find_places(os.environ), workspace_path(given), environ=os.environ, file=named)
    if named and not found.files:
        raise UsageProblem(f"There is no file {file}.")
    for text in found.problems:
        print_text(one_line(text))
    for text in found.notes:
        print_text(f"handrail: {one_line(text)}", file=sys.stderr)
    if found.problems:
        return STATUS_PROBLEMS
    for checked in found.files:
        print_text(f"{one_line(str(checked))}: nothing wrong.")
    if not found.files:
        print_text(
            "There is no settings file yet. `handrail config set KEY VALUE` writes one.", file=sys.stderr
        )
    return 0


@command.command()
def path() -> None:
    """Where your settings file is."""
    print_text(str(find_places(os.environ).settings))


def load_workspace_settings(given: dict[str, Any]) -> LoadedSettings:
    return load_settings(find_places(os.environ), workspace_path(given), environ=os.environ)
