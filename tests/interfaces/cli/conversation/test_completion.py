"""What is offered while a message is typed."""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from handrail.context.mentions import mentioned_names
from handrail.interfaces.cli.conversation.message_input import MessageCompleter
from tests.interfaces.cli.program import script, terminal


def offered(workspace: Path, text: str) -> list[str]:
    """The messages that would be there after each completion."""
    completer = MessageCompleter(workspace, lambda: {"mode": "how", "model": "who"})
    found = completer.get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + each.start_position] + each.text for each in found]


def test_a_name_with_a_space_is_quoted_so_that_it_is_one_mention(tmp_path: Path) -> None:
    (tmp_path / "name with space.txt").touch()
    (completed,) = offered(tmp_path, "see @name")
    assert completed == 'see @"name with space.txt"'
    assert mentioned_names(completed) == ["name with space.txt"]
    assert offered(tmp_path, 'see @"name wi') == [completed]


def test_an_agent_is_offered_where_it_can_be_called_at_the_start_of_a_message(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    completer = MessageCompleter(tmp_path, dict, lambda: ["report", "faq", "report"])

    def texts(typed: str) -> list[str]:
        return [each.text for each in completer.get_completions(Document(typed), CompleteEvent())]

    assert texts("@rep") == ["report", "reports/"]
    assert texts("see @rep") == ["reports/"]


@pytest.mark.promise("CTX-8")
def test_what_was_offered_and_is_mentioned_is_chosen(tmp_path: Path) -> None:
    for name in ("Makefile", "name with space.txt", "other"):
        (tmp_path / name).touch()
    completer = MessageCompleter(tmp_path, dict, lambda: ["report"], lambda _: [("Spec", "docs/spec.md")])
    for typed in ("@re", "see @Make", "see @nam", "see @Sp"):
        list(completer.get_completions(Document(typed), CompleteEvent()))
    chosen = completer.chosen('@report see @Makefile, @"name with space.txt", @Spec, @other')
    assert sorted(chosen) == ["Makefile", "Spec", "name with space.txt"]


@pytest.mark.promise("CTX-8")
def test_file_that_was_chosen_and_is_gone_is_reported_in_the_terminal(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Makefile").touch()
    with terminal("--model", script(tmp_path, {"text": "Hello."}), cwd=root) as talk:
        talk.expect("mode ask")
        talk.type("see @Makef")
        talk.expect("Makefile")
        talk.type("\t ")
        (root / "Makefile").unlink()
        talk.type("please\r")
        talk.expect("Makefile does not exist.")
        talk.expect("$0.00")
        talk.type("\x04")
        assert talk.end() == 0


def test_a_folder_with_a_space_is_gone_into(tmp_path: Path) -> None:
    (tmp_path / "my docs").mkdir()
    (tmp_path / "my docs" / "a.md").touch()
    assert offered(tmp_path, "@my") == ['@"my docs/']
    assert offered(tmp_path, '@"my docs/') == ['@"my docs/a.md"']


def test_a_name_that_is_nowhere_near_is_found_deeper(tmp_path: Path) -> None:
    (tmp_path / "src" / "shop").mkdir(parents=True)
    (tmp_path / "src" / "shop" / "cart.py").touch()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "cart.js").touch()
    assert offered(tmp_path, "fix @car") == ["fix @src/shop/cart.py"]
    assert offered(tmp_path, "fix @nothing") == []


def test_commands_are_offered_by_their_beginning(tmp_path: Path) -> None:
    assert offered(tmp_path, "/mo") == ["/mode", "/model"]
