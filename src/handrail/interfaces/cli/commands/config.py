"""`handrail config`: settings, and where each was set."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.commands.model import show as show_model
from handrail.interfaces.cli.options import folder, workspace_option
from handrail.protocol.errors import ConfigProblem, UsageProblem

if TYPE_CHECKING:
    from handrail.config.layers import LoadedSettings, ShownSetting


@click.group(invoke_without_command=True)
@workspace_option
@click.pass_context
def command(ctx: click.Context, /, workspace: str | None) -> None:
    """Show all settings, or show, get or set one."""
    ctx.obj = workspace or ctx.find_root().params.get("workspace") or "."
    if ctx.invoked_subcommand is None:
        show_all(ctx.obj)


@command.command()
@click.pass_obj
def show(workspace: str, /) -> None:
    """Every setting, its value and where it was set."""
    show_all(workspace)


@command.command()
@click.argument("key")
@click.pass_obj
def get(workspace: str, /, key: str) -> None:
    """The value of KEY, such as limits.usd."""
    found = {row.key: row for row in shown(load(workspace))}
    if key not in found:
        raise UsageProblem(f"There is no setting {key}. `handrail config` lists them.")
    print(written(found[key].value))


@command.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@click.pass_obj
def set_key(workspace: str, /, key: str, value: str) -> None:
    """Set KEY to VALUE in your settings file."""
    if key == "models.main":
        show_model(value, {"workspace": workspace})
        return
    from handrail.config.edit import save_setting
    from handrail.config.places import find_places

    places = find_places(os.environ)
    saved = save_setting(places, key, value)
    print(f"{key} = {written(saved)} in {places.settings}")
    try:
        load(workspace)
    except ConfigProblem as problem:
        print(f"handrail: Still to be mended: {problem}", file=sys.stderr)


@command.command()
def path() -> None:
    """Where your settings file is."""
    from handrail.config.places import find_places

    print(find_places(os.environ).settings)


def show_all(workspace: str) -> None:
    loaded = load(workspace)
    found = shown(loaded)
    key_width = max(len(row.key) for row in found)
    value_width = min(30, max(len(written(row.value)) for row in found))
    for row in found:
        print(f"{row.key:<{key_width}}  {written(row.value):<{value_width}}  {row.where}")
    for each in loaded.ignored:
        print(f"handrail: {each.file}: {each.key} is ignored: {each.why}", file=sys.stderr)


def load(workspace: str) -> "LoadedSettings":
    from handrail.config.layers import load_settings
    from handrail.config.places import find_places

    return load_settings(find_places(os.environ), folder(workspace), environ=os.environ)


def shown(loaded: "LoadedSettings") -> "list[ShownSetting]":
    from handrail.config.layers import shown_settings

    return shown_settings(loaded)


def written(value: Any) -> str:
    """A value as it is written in the settings file."""
    from handrail.config.edit import toml_value

    return toml_value(value)
