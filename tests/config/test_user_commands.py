"""The user's own slash commands: what a file means, and when one of a workspace can be used."""

import os
from pathlib import Path

import pytest

from handrail.config.places import Places, find_places
from handrail.config.trust import revoke, trust_commands
from handrail.config.user_commands import UserCommands
from handrail.protocol.errors import ConfigProblem, UsageProblem

REVIEW = """\
---
description: "Review a file"
arguments: FILE [FOCUS]
---
# Review

Review $1, above all for $2.
All of it: $ARGUMENTS. It costs \\$1.
"""


@pytest.fixture
def places() -> Places:
    return find_places(os.environ)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / "commands" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def own(places: Places, workspace: Path, text: str, name: str = "review") -> UserCommands:
    write(places.settings.parent, name, text)
    return UserCommands(places, workspace, {"help"})


def test_arguments_are_put_where_the_text_names_them(tmp_path: Path, places: Places) -> None:
    command = own(places, tmp_path, REVIEW).find("review")
    assert command is not None
    assert (command.description, command.arguments) == ("Review a file", "FILE [FOCUS]")
    assert command.message('"my file.py" $1 speed') == (
        '# Review\n\nReview my file.py, above all for $1.\nAll of it: "my file.py" $1 speed. It costs $1.'
    )
    assert "for ." in command.message("cart.py")
    assert "Review it's," in command.message("it's")
    with pytest.raises(UsageProblem, match=r"Say /review FILE \[FOCUS\]"):
        command.message("")


def test_a_text_that_names_no_argument_gets_it_at_the_end(tmp_path: Path, places: Places) -> None:
    command = own(places, tmp_path, "Explain this project.\n").find("review")
    assert command is not None
    assert (command.description, command.message("")) == ("Explain this project.", "Explain this project.")
    assert command.message("shortly") == "Explain this project.\n\nshortly"


@pytest.mark.promise("TERM-61")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\ndescription: x\nmodel: big\n---\nDo.", r"review\.md:3: unknown key 'model'"),
        ("---\ndescription: x\n", r"review\.md:1: the front matter does not end"),
        ("---\ndescription: x\n---\n\n", r"review\.md is empty"),
        ("x" * 40_000, r"more than 32,000"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(
    text: str, problem: str, tmp_path: Path, places: Places
) -> None:
    commands = own(places, tmp_path, text)
    with pytest.raises(ConfigProblem, match=problem):
        commands.find("review")
    assert [each.name for each in commands.all()[1]] == ["review"]


@pytest.mark.promise("TERM-61")
def test_a_built_in_name_is_never_a_command_of_a_file(tmp_path: Path, places: Places) -> None:
    commands = own(places, tmp_path, "Do something else.", "help")
    own(places, tmp_path, "Do.", "Not A Name")
    found, wrong = commands.all()
    assert found == []
    assert [each.name for each in wrong] == ["Not A Name", "help"]
    assert "/help is a command of Handrail's own" in wrong[1].problem
    assert commands.find("../commands/help") is None


@pytest.mark.promise("TERM-62")
def test_a_command_of_a_workspace_is_used_only_with_the_text_that_was_trusted(
    tmp_path: Path, places: Places
) -> None:
    path = write(tmp_path / ".handrail", "review", REVIEW)
    commands = UserCommands(places, tmp_path)
    with pytest.raises(UsageProblem, match="is not trusted"):
        commands.find("review")
    (untrusted,) = commands.untrusted()
    trust_commands(places, tmp_path, {untrusted.name: untrusted.sha256})
    assert commands.find("review") == untrusted._replace(trust="trusted")
    path.write_text(REVIEW.replace("Review $1", "Delete $1"), encoding="utf-8")
    with pytest.raises(UsageProblem, match="has changed since you trusted it"):
        commands.find("review")
    assert UserCommands(places, tmp_path, trusted=True).find("review") is not None
    path.write_text(REVIEW, encoding="utf-8")
    assert revoke(places, tmp_path)
    with pytest.raises(UsageProblem, match="is not trusted"):
        commands.find("review")
    own(places, tmp_path, "Mine.")
    mine = commands.find("review")
    assert mine is not None
    assert (mine.body, len(commands.all()[0])) == ("Mine.", 1)


@pytest.mark.promise("TERM-62")
def test_links_and_pipes_of_a_workspace_are_no_commands(tmp_path: Path, places: Places) -> None:
    workspace = tmp_path / "shop"
    outside = write(tmp_path, "secret", "Outside.")
    folder = write(workspace / ".handrail", "fine", "Fine.").parent
    (folder / "linked.md").symlink_to(outside)
    os.mkfifo(folder / "pipe.md")
    found, wrong = UserCommands(places, workspace, trusted=True).all()
    assert [each.name for each in found] == ["fine"]
    assert [each.name for each in wrong] == ["linked", "pipe"]
    other = tmp_path / "other"
    (other / ".handrail").mkdir(parents=True)
    (other / ".handrail" / "commands").symlink_to(outside.parent)
    assert UserCommands(places, other, trusted=True).all()[0] == []


def test_arguments_in_brackets_within_brackets_may_be_left_out(places: Places, tmp_path: Path) -> None:
    found = own(places, tmp_path, "---\narguments: FILE [FROM [TO]]\n---\nShow $1 $2 $3\n").find("review")
    assert found
    assert found.message("a.py") == "Show a.py  "
    with pytest.raises(UsageProblem, match="Say /review FILE"):
        found.message("")
