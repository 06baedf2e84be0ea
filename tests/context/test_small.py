"""What a small model is shown: short, only what matters, and only paths that there are."""

from pathlib import Path

import pytest

from handrail.context.small import ATTACHED, attach_relevant, small_prompt, statement_lines
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
    assert [tool.name for tool in prompt.tools] == ["read", "write", "run"]
    assert set(prompt.paths) == {"cart.py", "tax.py", "big.py", "test_cart.py"}
    assert set(prompt.writable) == {"cart.py", "tax.py"}
    assert "test_cart.py" in small_prompt(workspace, (), checked=False).writable


def test_only_lines_that_do_something_and_stand_once_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        '"""About.\n\nx = 0\n"""\nimport os\n\n\ndef f(x):\n    """Doc."""\n    # why\n    y = x + 1\n'
        "    if y:\n        return y\n    return y\n\n\ndef g():\n    pass\n"
    )
    (tmp_path / "b.js").write_text("// about\nfunction f(a) {\n  return a;\n}\nmodule.exports = { f };\n")
    lines = statement_lines(Workspace(tmp_path), ["a.py", "b.js", "missing.py"])
    assert lines == (
        ("a.py", "    y = x + 1"),
        ("a.py", "    if y:"),
        ("a.py", "        return y"),
        ("a.py", "    return y"),
        ("a.py", "    pass"),
        ("b.js", "  return a;"),
    )


def test_modes_that_only_read_offer_only_reading(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, Toolbox().specs("explore"), checked=False)
    assert [tool.name for tool in prompt.tools] == ["read"]


def test_files_named_in_the_output_come_first_and_all_of_it_is_short(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, (), checked=True)
    attached = attach_relevant(workspace, prompt, 'File "test_cart.py", line 3: total() is 1')
    assert [seen.path for seen in attached.files] == ["cart.py", "test_cart.py", "tax.py"]
    assert all(seen.whole and seen.how == "auto" for seen in attached.files)
    assert len(attached.text) < ATTACHED


def test_one_thing_is_asked_at_a_time(workspace: Workspace) -> None:
    prompt = small_prompt(workspace, Toolbox().specs("auto"), checked=True)
    line, file, chat = (prompt.for_attempt(number) for number in (1, 4, 0))
    assert line.lines
    assert line.tools == ()
    assert file.lines == ()
    assert [tool.name for tool in file.tools] == ["write"]
    assert (chat.lines, chat.tools) == ((), prompt.tools)
