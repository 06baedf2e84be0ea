"""What a small model is shown: short, only what matters, and only paths that there are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from handrail.context.small.prompt import file_list, files_to_show, named_files, small_prompt
from handrail.models.model import ActionChoices, ToolSpec
from handrail.tools.toolbox import Toolbox
from handrail.workspace.files import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "cart.py").write_text("def total():\n    return 1\n")
    (tmp_path / "tax.py").write_text("RATE = 19\n")
    (tmp_path / "big.py").write_text("x = 1\n" * 5_000)
    (tmp_path / "test_cart.py").write_text("import cart\n")
    (tmp_path / "CHECK").write_text("true\n")
    (tmp_path / ".env").write_text("KEY=1\n")
    (tmp_path / "picture.png").write_bytes(b"\x00")
    return Workspace(tmp_path)


def choices(
    workspace: Workspace,
    words: str = "",
    seen: Sequence[str] = (),
    tools: Sequence[ToolSpec] = (),
    *,
    checked: bool = False,
) -> ActionChoices:
    found = small_prompt(workspace, tools, words, seen, checked=checked).choices
    assert found
    return found


def test_prompt_is_small_and_names_only_files_that_can_be_used(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, Toolbox().specs("auto"), checked=True)
    assert len(prompt.system) + sum(len(str(tool)) for tool in prompt.tools) < 1_600
    assert [tool.name for tool in prompt.tools] == ["write", "read", "run"]
    assert prompt.choices
    assert set(prompt.choices.paths) == {"cart.py", "tax.py", "big.py", "test_cart.py"}
    assert set(prompt.choices.writable) == {"cart.py", "tax.py"}
    assert "test_cart.py" in choices(workspace).writable


def test_modes_that_only_read_offer_only_reading(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, Toolbox().specs("explore"), checked=False)
    assert [tool.name for tool in prompt.tools] == ["read", "run"]  # the gate runs only what reads


def test_a_new_file_can_be_written_when_the_user_names_it(workspace: Workspace) -> None:
    found = choices(workspace, "write src/hello.py, ../up.py, /etc/x.py and a.exe")
    assert found.writable == ("src/hello.py",)


def test_files_that_the_user_names_are_found(workspace: Workspace) -> None:
    words = "compare cart.py with tax.py, not with gone.py, (cart.py) or 3.14 e.g. that"
    assert named_files(words, workspace) == ["cart.py", "tax.py"]
    (workspace.root / "Makefile").write_text("all:\n")
    assert named_files("what does the Makefile do? And the Dockerfile, Makefile.am?", workspace) == [
        "Makefile"
    ]
    assert file_list(workspace) == "[Files: big.py, cart.py, tax.py, test_cart.py.]"


def test_a_change_that_names_no_file_is_about_those_that_were_shown_last(workspace: Workspace) -> None:
    seen = ["big.py", "tax.py", "test_cart.py", "cart.py", "gone.py"]
    assert files_to_show("fix it", seen, workspace) == ["test_cart.py", "cart.py"]
    assert files_to_show("fix tax.py", seen, workspace) == ["tax.py"]
    assert files_to_show("why is that?", seen, workspace) == []
    assert files_to_show("fix it", [], workspace) == []
    assert choices(workspace, "fix it", seen).writable == ("cart.py",)


def offered(workspace: Workspace, words: str, *seen: str) -> list[str]:
    prompt = small_prompt(workspace, Toolbox().specs("auto"), words, seen, checked=False)
    assert [tool.name for tool in prompt.tools] == ["write", "read", "run"]  # the prompt stays the same
    assert prompt.choices
    return list(prompt.choices.actions or ())


def test_code_leaves_little_to_choose(workspace: Workspace) -> None:
    everything = ["big.py", "cart.py", "tax.py", "test_cart.py"]
    assert offered(workspace, "add a total", *everything) == ["write"]
    assert offered(workspace, "add a total to cart.py", "cart.py") == ["write"]
    assert offered(workspace, "run the tests") == ["read", "run"]
    assert offered(workspace, "fix it and run the tests") == ["write", "read", "run"]


@pytest.mark.parametrize(
    "words", ["what does total do?", "Explain cart.py", "add it, could you?", "why", "hi", "thanks"]
)
def test_a_question_changes_nothing(workspace: Workspace, words: str) -> None:
    assert "write" not in offered(workspace, words)


@pytest.mark.parametrize("words", ["hi", "Hello there!", "thanks a lot", "good morning"])
def test_a_greeting_is_only_answered(workspace: Workspace, words: str) -> None:
    assert offered(workspace, words) == []


def test_files_that_the_user_names_are_the_ones_to_write(workspace: Workspace) -> None:
    tools = Toolbox().specs("auto")
    assert choices(workspace, "fix cart.py", tools=tools).writable == ("cart.py",)
    assert set(choices(workspace, "fix it", tools=tools).writable) == {
        "cart.py",
        "tax.py",
        "test_cart.py",
    }
