"""Running the commands of an answer, in a terminal."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.interfaces.cli.render.events import batch_lines, command_list_lines
from handrail.protocol.events import BatchFinished, BatchStep
from handrail.protocol.values import ToolCall
from tests.interfaces.cli.program import script, terminal

ENTER, CTRL_D = "\r", "\x04"
ANSWER = "Do this:\n\n```sh\necho one > log\ncat missing\necho two >> log\n```\n"


def text_of(rows: list[tuple[tuple[str, str], ...]]) -> list[str]:
    return ["".join(text for _, text in row) for row in rows]


def test_a_list_shows_all_of_every_command_and_what_cannot_be_seen() -> None:
    rows = text_of(
        [tuple(row) for row in command_list_lines(("ls", "for a in b; do\n  c\ndone", "x\u202ey"), 80)]
    )
    assert rows == ["  1 ls", "  2 for a in b; do", "      c", "    done", "  3 x<U+202E>y"]


def test_progress_is_a_line() -> None:
    call = ToolCall(id="c", name="run")
    step = BatchStep(turn_id="t", batch_id="b", number=2, call=call, total=5, succeeded=1, remaining=3)
    assert text_of([tuple(row) for row in batch_lines(step, 80)]) == [
        "  all       2/5 · 1 succeeded · 0 failed · 3 remaining"
    ]
    alone = replace(step, total=1, number=1, remaining=0)
    assert batch_lines(alone, 80) == []
    stopped = BatchFinished(
        turn_id="t", batch_id="b", end="stopped", number=2, total=5, succeeded=1, failed=1, remaining=3
    )
    assert text_of([tuple(row) for row in batch_lines(stopped, 80)]) == [
        "  all       2/5 · 1 succeeded · 1 failed · 3 remaining"
    ]


@pytest.mark.promise("BATCH-5")
def test_commands_of_an_answer_are_offered_listed_and_run(tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    model = script(
        tmp_path,
        {"when": "fix it", "text": ANSWER},
        {"when": "1 failed", "text": '{"decision": "stop", "why": "It is not there."}'},
        {"when": "say how to go on", "text": '{"decision": "continue"}'},
        {"when": "", "text": "So it is."},
    )
    with terminal("--model", model, cwd=workspace) as talk:
        talk.expect("mode ask")
        talk.type("/run" + ENTER)
        talk.expect("suggests no command")
        talk.type("fix it in main.py" + ENTER)
        talk.expect("3 commands: /run lists them, /run 2 runs one, /run all runs all")
        talk.type("/run" + ENTER)
        talk.expect("3 echo two >> log")
        talk.type("/run 9" + ENTER)
        talk.expect("There are commands 1 to 3")
        talk.type("/run all" + ENTER)
        talk.expect("2/3 · 1 succeeded · 0 failed · 1 remaining")
        talk.expect("2/3 · 1 succeeded · 1 failed · 1 remaining")
        talk.expect("Stopped: It is not there.")
        talk.type("/run 3" + ENTER)
        talk.expect("So it is.")
        talk.expect("$0.00")
        assert (workspace / "log").read_text() == "one\ntwo\n"
        talk.type(CTRL_D)
        assert talk.end() == 0
