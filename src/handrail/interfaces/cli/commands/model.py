"""`handrail model [NAME]`: which model answers, and why."""

from typing import Any

import click

from handrail.interfaces.cli.options import options_for, workspace_option


@click.command()
@click.argument("name", default="")
@workspace_option
def command(name: str, **given: Any) -> None:
    """Show which model answers here and why; with NAME, make that your default."""
    import anyio

    from handrail.app import open_app
    from handrail.config.edit import save_setting

    async def run() -> None:
        async with open_app(options_for(given)._replace(model=name)) as app:
            chosen = await app.chosen_model()
            if name:
                save_setting(app.places, "models.main", chosen.reference)
                print(f"{chosen.reference} is your default now, in {app.places.settings}.")
            else:
                print(f"{chosen.reference} ({chosen.why})")

    anyio.run(run)
