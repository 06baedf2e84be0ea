"""What is offered while a message is typed."""

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from handrail.context.mentions import mentioned_names
from handrail.interfaces.cli.conversation.message_input import MessageCompleter


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
