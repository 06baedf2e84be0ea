"""`handrail model [NAME]`: which model answers, and why. `handrail model fetch`: have one of our own."""

import os
from typing import Any

import click

from handrail.interfaces.cli.opening import opened
from handrail.interfaces.cli.options import options_for, workspace_option
from handrail.protocol.errors import UsageProblem


@click.command()
@click.argument("name", default="")
@click.option("--yes", is_flag=True, help="With fetch: download without asking.")
@workspace_option
def command(name: str, yes: bool, **given: Any) -> int:
    """Show which model answers here and why; with NAME, make that your default.

    `handrail model fetch` downloads the small model that answers without a key and without a network.
    """
    if name == "fetch":
        return fetch(yes=yes)
    show(name, given)
    return 0


def show(name: str, given: dict[str, Any]) -> None:
    import anyio

    from handrail.config.edit import save_setting

    async def run() -> None:
        async with opened(options_for(given)._replace(model=name)) as app:
            chosen = await app.chosen_model()
            if name:
                save_setting(app.places, "models.main", chosen.reference)
                print(f"{chosen.reference} is your default now, in {app.places.settings}.")
            else:
                print(f"{chosen.reference} ({chosen.why})")

    anyio.run(run)


def fetch(*, yes: bool) -> int:
    import anyio

    from handrail.interfaces.cli.fetching import fetch_shown, may_download
    from handrail.models.embedded.files import DEFAULT, find_file, models_folder
    from handrail.models.embedded.offer import INSTALL, has_runtime

    folder = models_folder(os.environ)
    path = find_file(DEFAULT, os.environ)
    if path is None and not has_runtime():
        raise UsageProblem(
            f"Nothing was downloaded: the library that runs the model is missing. First {INSTALL}."
        )
    if path is None and not may_download(DEFAULT, yes=yes):
        return 1
    if path is None or path.parent == folder:
        path = anyio.run(fetch_shown, DEFAULT, folder)
    print(f"embedded/{DEFAULT.model} is here: {path}")
    if not has_runtime():
        print(f"The library that runs it is missing: {INSTALL}.")
    return 0
