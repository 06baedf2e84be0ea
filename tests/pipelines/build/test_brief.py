"""What the model that writes the code is shown: what the user attached, and which issues come first."""

from pathlib import Path

import pytest

from handrail.models.model import UserTurn
from handrail.protocol.events import StageCompleted
from tests.pipelines.build.builds import COPIES, PLAN, RIGHT, Build, build, replaced, script

pytestmark = pytest.mark.anyio
BY_KIND = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "style"
kind = "lint"
run = "! grep -n AAA calc.py"
[[checks.commands]]
name = "tests"
run = "! grep -n BBB calc.py"
[[checks.commands]]
name = "compile"
kind = "build"
run = "! grep -n CCC calc.py"
"""


def last_words(done: Build) -> str:
    last = done.requests[-1].messages[-1]
    assert isinstance(last, UserTurn)
    return last.text


@pytest.mark.promise("BUILD-2")
async def test_what_fails_to_build_is_corrected_first_then_tests_then_style(tmp_path: Path) -> None:
    rounds = [[replaced("number + 1", "number + 2  # AAA BBB CCC")]]
    rounds += [[replaced(word, "x")] for word in ("CCC", "BBB", "AAA")]
    done = await build(tmp_path, script(*rounds), task="Let double in calc.py differ.", settings=BY_KIND)
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        briefs = [
            each.output
            for each in done.events
            if isinstance(each, StageCompleted) and each.stage == "brief" and each.output
        ]
        assert [each["strategy"] for each in briefs] == [
            "plan",
            "build+types",
            "tests+coverage",
            "lint+consistency+docs",
        ]


@pytest.mark.promise("BUILD-17")
async def test_what_a_mention_attaches_is_shown_to_whoever_writes_and_corrects_the_code(
    tmp_path: Path,
) -> None:
    files = {"calc.py": "def double(number):\n    return number + 1\n", "rule.txt": "Twice means * 2.\n"}
    settings = BY_KIND.replace("! grep -n BBB", "grep -q 'number \\\\* 2'")
    wrong, right = replaced("number + 1", "number + 2"), replaced("number + 2", "number * 2")
    answers = script([wrong], [right], plan=PLAN)
    done = await build(
        tmp_path, answers, task="Correct calc.py by @rule.txt.", files=files, settings=settings
    )
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        asked = [
            each.text for request in done.requests for each in request.messages if isinstance(each, UserTurn)
        ]
        assert ["Twice means * 2." in text for text in asked if "Output of brief" in text] == [True, True]


@pytest.mark.promise("BUILD-17")
async def test_what_a_mention_attaches_leaves_room_for_the_code(tmp_path: Path) -> None:
    files = {"calc.py": RIGHT.replace("* 2", "+ 1"), "long.txt": "many words\n" * 4_000}
    done = await build(
        tmp_path,
        script([replaced("number + 1", "number * 2")]),
        task="Fix calc.py by @long.txt.",
        files=files,
        settings=BY_KIND,
    )
    assert done.state == ("complete" if COPIES else "failed"), done.detail
    if COPIES:
        assert "more characters left out" in last_words(done)
        assert "return number + 1" in last_words(done)
