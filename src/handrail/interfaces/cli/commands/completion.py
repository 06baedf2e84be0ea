"""`handrail completion`: the script with which a shell completes commands, options and names."""

import click
from click.shell_completion import get_completion_class

from handrail.interfaces.cli.terminal import print_text
from handrail.protocol.errors import UsageProblem

VARIABLE = "_HANDRAIL_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that lets your shell complete handrail's commands, options, sessions and agents.

    \b
    bash, in ~/.bashrc:                    eval "$(handrail completion bash)"
    zsh, in ~/.zshrc after compinit:       eval "$(handrail completion zsh)"
    fish, in ~/.config/fish/config.fish:   handrail completion fish | source
    """
    found = get_completion_class(shell)
    if found is None:
        raise UsageProblem(f"There is no completion for {shell}.")
    source = found(ctx.find_root().command, {}, "handrail", VARIABLE).source()
    # Click's script for fish cuts descriptions at their first comma.
    print_text(source.replace('string split "," $completion', 'string split --max 1 "," $completion'))
