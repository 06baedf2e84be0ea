"""What a person is shown of events, at 80 columns."""

import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace

from handrail.interfaces.cli.render.styles import ansi
from handrail.protocol.events import (
    ApprovalAnswered,
    CandidateTried,
    Compacted,
    ModelSet,
    QuestionAsked,
    RequestFailed,
    TodoCompleted,
    TodosChanged,
)
from handrail.protocol.values import CompactionSummary, Todo, ToolCall
from tests.interfaces.cli.shown import DIFF, answered, asked, ended, finished, refused, said, shown, started


def test_a_turn_reads_like_a_page() -> None:
    assert shown(
        said("why does test_totals fail?"),
        started("read", "tests/test_totals.py"),
        finished("read", "41 lines"),
        started("search", '"def total"'),
        finished("search", "2 hits in src/cart.py"),
        answered("The test expects the discount before tax; `total()` in src/cart.py:52 applies it after."),
        ended(),
        said("fix it"),
        asked(),
        started("edit", "src/cart.py"),
        finished("edit", "+1 -1", shown=DIFF),
        started("run", "pytest -q tests/test_totals.py", call_id="c_2"),
        finished("run", "exit 0 in 0.4 s", shown="1 passed in 0.04s", call_id="c_2"),
        answered("Done: discount is applied before tax; the test passes.", message_id="m_3"),
        ended(cost=0.0123),
    ) == snapshot("""\
> why does test_totals fail?

  read      tests/test_totals.py       41 lines
  search    "def total"                2 hits in src/cart.py
The test expects the discount before tax; `total()` in src/cart.py:52 applies
it after.
                                               3.1 s   1,204 in  96 out   $0.00

> fix it

  edit      src/cart.py
      50   def total():
      51       tax = 1
      52 -     return (subtotal + tax) * (1 - discount)
      52 +     return subtotal * (1 - discount) + tax
      53   # end
  applied   +1 -1   /undo undoes it
  run       pytest -q tests/test_totals.py   exit 0 in 0.4 s
    1 passed in 0.04s
Done: discount is applied before tax; the test passes.
                                               3.1 s   1,204 in  96 out   $0.01\
""")


def test_a_refusal_says_what_happened_and_not_what_the_model_is_told_to_do() -> None:
    call = ToolCall(id="c_1", name="edit", arguments={"path": "src/cart.py", "old": "x"})
    message = (
        "src/cart.py exists, and the model has not been shown it. Read src/cart.py, then repeat the change."
    )
    assert shown(answered("", call), refused("edit", "no_hash", message)) == snapshot("""\
  edit      src/cart.py                refused  no_hash: src/cart.py exists,
            and the model has not been shown it.\
""")
    yours = "src/.env may hold secrets. Write it yourself."
    assert "Write it yourself." in shown(answered("", call), refused("edit", "protected_path", yours))


def test_a_tool_with_a_long_name_keeps_to_its_column() -> None:
    assert shown(started("request_scope", "docs/**"), finished("request_scope", "allowed")) == snapshot("""\
  scope     docs/**                    allowed\
""")


def test_a_rejection_shows_the_reason_once_and_an_always_what_it_holds_for() -> None:
    assert shown(
        asked(),
        ApprovalAnswered(approval_id="a_1", decision="reject", note="not in this file"),
        refused("edit", "user_rejected", "The user said no: not in this file"),
        asked("run", "pytest -q", "pytest -q"),
        ApprovalAnswered(approval_id="a_1", decision="always"),
        finished("run", "exit 0 in 1.2 s"),
    ) == snapshot("""\
  edit      src/cart.py
      50   def total():
      51       tax = 1
      52 -     return (subtotal + tax) * (1 - discount)
      52 +     return subtotal * (1 - discount) + tax
      53   # end
            refused  user_rejected: The user said no: not in this file
  run       pytest -q
  allowed   run pytest -q: always in this session
  done      exit 0 in 1.2 s\
""")


@pytest.mark.parametrize(
    ("reason", "detail", "expected"),
    [
        (
            "failed",
            "The key was refused. Set another, or choose another model with /model.",
            snapshot("""\
failed  The key was refused. Set another, or choose another model with /model.
                                      3.1 s   1,204 in  96 out   cost not known\
"""),
        ),
        (
            "cancelled",
            "You cancelled it.",
            snapshot("stopped  You cancelled it.            3.1 s   1,204 in  96 out   cost not known"),
        ),
        (
            "budget",
            "2.00 USD are spent.",
            snapshot("limit reached  2.00 USD are spent.    3.1 s   1,204 in  96 out   cost not known"),
        ),
    ],
)
def test_the_end_of_a_turn_says_why(reason: str, detail: str, expected: str) -> None:
    assert shown(ended(reason, detail, cost=None)) == expected  # type: ignore[arg-type]


def test_todos_show_what_is_done() -> None:
    todos = (Todo(id="1", text="find the cause", done=True), Todo(id="2", text="fix it"))
    assert shown(TodosChanged(todos=todos), TodoCompleted(todo_id="2", by="command")) == snapshot("""\
  todos     1 of 2 done
    x find the cause
    - fix it
  todo      done: fix it (by a command)\
""")


def test_small_edits_that_fail_are_not_listed() -> None:
    edit = CandidateTried(
        turn_id="t_1",
        stage_id="",
        number=7,
        key="k",
        asked="mutation",
        path="cart.py",
        line=3,
        change="a < b",
        result="passed",
        passing=8,
        total=8,
    )
    told = " ".join(shown(edit).split())
    assert told == "answer 7 small edit cart.py:3 `a < b`: passed, 8 of 8 tests pass"
    assert shown(replace(edit, result="failed", passing=0, total=0)) == ""
    assert "failed" in shown(replace(edit, asked="line", result="failed"))


def test_what_happens_to_the_session_is_a_note() -> None:
    assert shown(
        RequestFailed(request_id="r", kind="retry_later", message="The server is overloaded.", retry_in=4.0),
        ModelSet(model="openai/gpt-5", why="chosen in this session"),
        Compacted(
            compaction_id="x",
            upto=9,
            summary="...",
            kept=CompactionSummary(
                goal="g", asked="a", said=("- user: b",), files=("- a.py",), todos=("- t1: c",)
            ),
            problem="It wrote nothing.",
            tokens_before=90_000,
            tokens_after=4_100,
        ),
        QuestionAsked(
            turn_id="t", question_id="q", call_id="c", question="Which database?", options=("sqlite", "none")
        ),
    ) == snapshot("""\
  model     The server is overloaded; trying again in 4.0 s
  model     openai/gpt-5 (chosen in this session)
  compacted older turns: 90,000 tokens are now 4,100; kept: the goal, 2
            messages, 1 changed file, 1 open todo
            no notes by the model: It wrote nothing.
            /compact show shows it, /compact undo undoes it
  Which database?
  1 sqlite
  2 none\
""")


def test_long_output_keeps_its_beginning_and_its_end() -> None:
    output = "\n".join(f"line {number}" for number in range(100))
    assert shown(started("run", "make"), finished("run", "exit 2 in 9.0 s", shown=output)) == snapshot("""\
  run       make                       exit 2 in 9.0 s
    line 0
    line 1
    line 2
    line 3
    line 4
    … 85 more lines
    line 90
    line 91
    line 92
    line 93
    line 94
    line 95
    line 96
    line 97
    line 98
    line 99\
""")


def test_every_line_fits_the_width() -> None:
    long = "word " * 60
    text = shown(
        said(long),
        started("run", "x" * 300),
        finished("run", "exit 0", shown="y" * 300),
        refused("edit", "no_match", long),
        asked(preview=DIFF.replace("tax = 1", "tax = " + "1" * 200)),
        answered(long),
        ended("failed", long),
    )
    assert max(len(row) for row in text.splitlines()) <= 79


@pytest.mark.promise("TERM-1")
def test_nothing_that_a_model_or_a_tool_says_reaches_the_terminal_as_a_command() -> None:
    evil = "\x1b]0;owned\x07 \x1b[2J \x9b31m \r over \u202e txet"
    rows = [
        shown(answered(evil + "\n```\n" + evil + "\n```\n")),
        shown(started("run", evil), finished("run", evil, shown=evil)),
        shown(asked("run", evil, evil)),
        ansi((("bad", evil),), colour=True),  # type: ignore[arg-type]
    ]
    for text in rows:
        left = text.replace("\x1b[31m", "").replace("\x1b[0m", "")
        assert not [c for c in left if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")]
        assert "^[" in left
