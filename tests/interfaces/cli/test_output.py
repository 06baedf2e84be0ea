"""Control sequences and invisible characters in names, settings and answers are shown, never obeyed."""

import json
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from handrail.interfaces.cli.conversation.message_input import MessageCompleter
from handrail.interfaces.cli.render.approvals import approval_lines
from handrail.interfaces.cli.render.styles import clean, one_line, plain
from tests.interfaces.cli.program import run, script, terminal
from tests.interfaces.cli.shown import asked

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202etxt\u2028next"
ESCAPED = json.dumps(EVIL)  # for TOML and YAML too
DANGEROUS = (
    *map(chr, (*range(0x09), 0x0B, 0x0C, 0x0D, *range(0x0E, 0x20), 0x7F, *range(0x80, 0xA0))),
    *("\u2028", "\u2029", "\u00ad", "\u034f", "\u061c", "\u115f", "\u3164", "\uffa0", "\u180e", "\ufeff"),
    *map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070))),
    *map(chr, (0xFFF9, 0xFFFB, 0xE0001, 0xE0020, 0xE007F, 0xE0100, 0xE01EF, 0xFE00, 0x1D173)),
    *("\ud800", "\udcff"),
)


def unsafe(text: str) -> set[str]:
    return set(text) & set(DANGEROUS)


@pytest.mark.promise("TERM-18")
@pytest.mark.parametrize("character", DANGEROUS, ids=lambda each: f"U+{ord(each):04X}")
def test_a_character_that_acts_or_hides_is_spelled_out(character: str) -> None:
    for text in (clean(f"a{character}b"), one_line(f"a{character}b"), clean(f"a{character}b", tab="\t")):
        assert not unsafe(text)
        assert text not in ("ab", "a b")
    shown = "\n".join(plain(row) for row in approval_lines(asked("run", "x", f"echo a{character}b"), 79))
    assert not unsafe(shown)
    assert "echo ab" not in shown


@pytest.mark.promise("TERM-18")
def test_ordinary_text_of_any_script_is_left_alone() -> None:
    for text in ("naïve 日本語 данные עברית ελληνικά", "👨‍👩‍👧 ❤️ 👍🏽", "e\u0301", "a\nb", "½ → …"):
        assert clean(text) == text
    assert clean("\tx") == "    x"
    assert clean("\tx", tab="\t") == "\tx"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for folder in (".handrail", ".orchestration", "agents/helper/prompts", f"agents/{EVIL}"):
        (root / folder).mkdir(parents=True)
    (root / ".handrail" / "config.toml").write_text(
        f'mode = "auto"\n[commands]\nallow = [{ESCAPED}]\n[connections.{ESCAPED}]\nbase_url = {ESCAPED}\n'
        f"[[hooks]]\non = 'before_end'\nrun = [{ESCAPED}]\n"
    )
    (root / ".orchestration" / "active_intents.yaml").write_text(
        f"active_intents:\n  - id: INT-1\n    name: {ESCAPED}\n    status: IN_PROGRESS\n"
        f"    owned_scope: [{ESCAPED}]\n    constraints: [{ESCAPED}]\n"
    )
    (root / "agents" / EVIL / "agent.toml").write_text(f"name = {ESCAPED}\n")
    (root / "agents" / "helper" / "agent.toml").write_text(f"name = {ESCAPED}\ndescription = {ESCAPED}\n")
    (root / EVIL).write_text("x\n")
    return root


@pytest.mark.promise("TERM-17")
@pytest.mark.usefixtures("no_server")
def test_names_and_values_of_a_workspace_reach_no_terminal_unfiltered(hostile: Path) -> None:
    shown = ""
    for words in (
        ("config",),
        ("config", "get", f"connections.{EVIL}.base_url"),
        ("config", "get", "commands.allow"),
        ("doctor",),
        ("agents",),
        ("agents", "show", "helper"),
        ("agents", "show", EVIL),
        ("agents", "validate"),
        ("intents",),
        ("intents", "show", "INT-1"),
        ("intents", "check"),
        ("policy", "explain", "--command", EVIL.replace("\u2028", "")),
        ("policy", "explain", "--path", EVIL),
        ("trust",),
        ("run", "x", "--model", EVIL),
        ("sessions", "delete", EVIL),
        ("undo", EVIL),
        ("-C", EVIL, "run", "x"),
    ):
        for debug in ("0", "1"):
            done = run(*words, cwd=hostile, HANDRAIL_DEBUG=debug)
            assert not unsafe(done.stdout + done.stderr), words
            shown += done.stdout + done.stderr
    assert "^[]0;owned" in shown
    assert "<U+202E>" in shown
    assert "<U+2028>" in shown


@pytest.mark.promise("TERM-17")
@pytest.mark.usefixtures("no_server")
def test_config_in_a_terminal_shows_escapes_as_text(hostile: Path) -> None:
    with terminal("trust", cwd=hostile) as talk:
        talk.expect("Trust this, as it is now?")
        talk.type("y\r")
        talk.expect("Trusted")
        assert talk.end() == 0
    done = run("config", cwd=hostile)
    assert f"connections.{clean(EVIL)}.base_url" in done.stdout.replace('"', "")
    assert not unsafe(done.stdout + done.stderr)


@pytest.mark.promise("TERM-19")
def test_a_piped_answer_is_filtered_unless_raw_or_json_is_asked_for(tmp_path: Path) -> None:
    answer = f"one\ttab {EVIL}\nend"
    model = script(tmp_path, {"text": answer})
    done = run("run", "x", "--model", model, cwd=tmp_path)
    assert done.stdout == f"{clean(answer, tab=chr(9))}\n"
    assert not unsafe(done.stdout + done.stderr)
    raw = run("run", "x", "--raw", "--model", model, cwd=tmp_path)
    assert raw.stdout == f"{answer}\n"
    assert not unsafe(raw.stderr)
    events = run("run", "x", "--json", "--model", model, cwd=tmp_path)
    assert not unsafe(events.stdout)
    texts = [event.get("text") for event in map(json.loads, events.stdout.splitlines())]
    assert answer in texts


@pytest.mark.promise("TERM-19")
def test_raw_in_a_terminal_is_filtered_all_the_same(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": f"said {EVIL}"})
    with terminal("run", "x", "--raw", "--model", model, cwd=tmp_path) as talk:
        talk.expect("^[]0;owned^G")
        talk.expect("<U+202E>")
        assert talk.end() == 0


@pytest.mark.promise("TERM-20")
def test_the_completion_menu_shows_names_filtered(hostile: Path) -> None:
    completer = MessageCompleter(hostile, dict, lambda: [EVIL])
    for typed in ("@", "look at @"):
        found = list(completer.get_completions(Document(typed), CompleteEvent()))
        assert any("owned" in each.display_text for each in found)
        for each in found:
            assert not unsafe(each.display_text)
