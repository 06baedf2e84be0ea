"""`handrail trust`: what this folder would change, and the user's word on it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.interfaces.cli.options import folder, workspace_option
from handrail.interfaces.cli.styles import clean
from handrail.interfaces.cli.terminal import is_terminal

if TYPE_CHECKING:
    from handrail.config.layers import LoadedSettings

NOBODY_ASKED = 3


@click.command()
@click.option("--revoke", "revoking", is_flag=True, help="Trust nothing here any more.")
@workspace_option
def command(revoking: bool, **given: Any) -> int:
    """Show what the settings of this workspace would change, and let them count if you say so.

    Until then they can only narrow what is allowed. The word holds for the files as they are now: when one of
    them changes, it is asked again.
    """
    from handrail.config.layers import load_settings
    from handrail.config.places import find_places
    from handrail.config.trust import revoke

    inherited = click.get_current_context().find_root().params.get("workspace")
    workspace, places = folder(given["workspace"] or inherited or "."), find_places(os.environ)
    if revoking:
        print(
            "Nothing here is trusted any more." if revoke(places, workspace) else "Nothing was trusted here."
        )
        return 0
    loaded = load_settings(places, workspace, environ=os.environ)
    if loaded.trust == "trusted":
        print("The settings of this workspace are trusted. `handrail trust --revoke` ends that.")
        return 0
    if not loaded.ignored:
        print("Nothing in this workspace needs to be trusted.")
        return 0
    show(loaded)
    return ask(loaded, workspace)


def show(loaded: "LoadedSettings") -> None:
    """What would count, and what that means."""
    if loaded.trust == "changed":
        print("This has changed since you trusted it.")
    for each in loaded.ignored:
        print(f"{clean(each.file)}: {clean(each.key)} = {clean(each.value)}")
        print(f"    {clean(each.why)}")
    for program in loaded.brought[1:]:
        print(f"{clean(program.name)}: would run as it is now; look at it first")


def ask(loaded: "LoadedSettings", workspace: Path) -> int:
    """The exit status, after the user's word."""
    from handrail.config.places import find_places
    from handrail.config.trust import trust

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        print("handrail: Nobody can be asked here. Run it in a terminal.", file=sys.stderr)
        return NOBODY_ASKED
    if not click.confirm("Trust this, as it is now?", default=False, err=True):
        print("Nothing was trusted.")
        return 0
    # What was shown, not what may be there by now.
    trust(find_places(os.environ), workspace, loaded.brought)
    print("Trusted. When it changes, it counts no more until you have looked at it again.")
    return 0
