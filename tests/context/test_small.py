"""What a small model is shown: short, only what matters, and only paths that there are."""

from pathlib import Path

import pytest

from handrail.context.small import file_list, named_files, small_prompt
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


def test_prompt_is_small_and_names_only_files_that_can_be_used(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, Toolbox().specs("auto"), checked=True)
    assert len(prompt.system) + sum(len(str(tool)) for tool in prompt.tools) < 1_600
    assert [tool.name for tool in prompt.tools] == ["write", "read", "run"]
    assert set(prompt.paths) == {"cart.py", "tax.py", "big.py", "test_cart.py"}
    assert set(prompt.writable) == {"cart.py", "tax.py"}
    assert "test_cart.py" in small_prompt(workspace, (), checked=False).writable


def test_modes_that_only_read_offer_only_reading(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, Toolbox().specs("explore"), checked=False)
    assert [tool.name for tool in prompt.tools] == ["read"]


def test_a_new_file_can_be_written_when_the_user_names_it(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, (), "write src/hello.py, ../up.py, /etc/x.py and a.exe", checked=False)
    assert prompt.writable[-1] == "src/hello.py"
    assert set(prompt.writable[:-1]) == {"cart.py", "tax.py", "test_cart.py"}


def test_files_that_the_user_names_are_found(workspace: Workspace) -> None:
    words = "compare cart.py with tax.py, not with gone.py, (cart.py) or 3.14 e.g. that"
    assert named_files(words, workspace) == ["cart.py", "tax.py"]
    assert file_list(workspace) == "[Files: big.py, cart.py, tax.py, test_cart.py.]"


def test_what_was_shown_cannot_be_read_again(workspace: Workspace) -> None:
    tools = Toolbox().specs("auto")
    assert small_prompt(workspace, tools, "", ["cart.py"], checked=False).paths == (
        "big.py",
        "tax.py",
        "test_cart.py",
    )
    everything = ["big.py", "cart.py", "tax.py", "test_cart.py"]
    assert [tool.name for tool in small_prompt(workspace, tools, "", everything, checked=False).tools] == [
        "write",
        "run",
    ]
