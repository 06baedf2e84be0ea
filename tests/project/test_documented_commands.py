"""Every command that the docs or a message of ours names is one that there is."""

import ast
import re

import click

from handrail.interfaces.cli.group import handrail
from tests.project.source import ROOT, modules, tree

NAMED = re.compile(r"handrail ([a-z]+) ([a-z][\w.-]*)(?=[ `\n]|$)")


def texts() -> dict[str, str]:
    """The documents, and what each module's string literals say, by their paths."""
    pages = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")),
    ]
    found = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages}
    for module in modules():
        literals = [
            node.value
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        found[str(module.relative_to(ROOT))] = "\n".join(literals)
    return found


def groups() -> dict[str, click.Group]:
    context = click.Context(handrail)
    commands = {name: handrail.get_command(context, name) for name in handrail.list_commands(context)}
    return {name: command for name, command in commands.items() if isinstance(command, click.Group)}


def test_each_named_command_of_a_group_exists() -> None:
    known = groups()
    assert "config" in known
    wrong = [
        f"{path}: handrail {group} {word}"
        for path, text in texts().items()
        for group, word in NAMED.findall(text)
        if group in known and known[group].get_command(click.Context(known[group]), word) is None
    ]
    assert wrong == []
