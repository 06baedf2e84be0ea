"""Whole builds: what they end with, what is left in the workspace, and which gates they passed."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.app.builds.build import accept_proposal, build_counts, build_task, find_proposal
from handrail.models.model import UserTurn
from handrail.pipelines.build.states import ENDS
from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import PathProblem
from handrail.protocol.events import ChangeApplied, StageStarted, TurnFinished
from handrail.verification.proposed import ProposalChecks, ProposedFile
from tests.engine.conversation import conversation
from tests.pipelines.build.builds import (
    APPROVED,
    COPIES,
    FIX,
    PLAN,
    PROJECT,
    RIGHT,
    TASK,
    WRONG,
    Build,
    build,
    replaced,
    script,
)
from tests.verification.projects import checks_of, write

pytestmark = pytest.mark.anyio
COMPLETE = "complete" if COPIES else "failed"
WORSE = replaced("number // 2", "number // 3")


def by_copies(state: str) -> str:
    """Without scratch copies, every build fails before it begins."""
    return state if COPIES else "failed"


def is_untouched(done: Build) -> bool:
    return done.text("calc.py") == WRONG and not any(isinstance(each, ChangeApplied) for each in done.events)


@pytest.mark.promise("BUILD-1")
@pytest.mark.promise("BUILD-3")
async def test_build_that_passes_is_applied_as_one_change_set_with_its_changelog_entry(
    tmp_path: Path,
) -> None:
    files = {**PROJECT, "CHANGELOG.md": "# Changelog\n\n## [2020-01-01] - Old\n- Something\n"}
    answer = {"changes": [FIX], "changelog": "double multiplies by two"}
    done = await build(tmp_path, script(answer), files=files, settings="")
    assert done.state == COMPLETE
    if COPIES:
        assert done.text("calc.py") == RIGHT
        entry = done.text("CHANGELOG.md")
        assert "double multiplies by two" in entry
        assert entry.index("double returns twice") < entry.index("## [2020-01-01] - Old\n- Something")
        assert sum(isinstance(each, ChangeApplied) for each in done.events) == 1
        gates = [each.after for each in done.history.transitions if each.after.startswith("awaiting")]
        assert gates == [
            "awaiting_plan_gate",
            "awaiting_audit_gate",
            "awaiting_execution_gate",
            "awaiting_documentation_gate",
            "awaiting_verification_gate",
        ]


@pytest.mark.promise("BUILD-2")
async def test_correction_that_makes_it_worse_is_rolled_back_before_the_next(tmp_path: Path) -> None:
    still_wrong = replaced("number + 1", "number + 3")
    # The third answer edits what the first one left: the second one is gone.
    done = await build(tmp_path, script([still_wrong], [WORSE], [replaced("number + 3", "number * 2")]))
    assert done.state == COMPLETE
    assert done.text("calc.py") == (RIGHT if COPIES else WRONG)
    if COPIES:
        shown = [each for request in done.requests for each in request.messages if isinstance(each, UserTurn)]
        assert "number + 3" in shown[-1].text
        assert "made it worse" in shown[-1].text
        assert [each.step for each in done.history.transitions].count("corrected") == 2


@pytest.mark.promise("BUILD-2")
async def test_build_that_never_passes_escalates_after_three_corrections_and_changes_nothing(
    tmp_path: Path,
) -> None:
    rounds = [[replaced(f"number + {each}", f"number + {each + 1}")] for each in range(1, 5)]
    done = await build(tmp_path, script(*rounds))
    assert (done.state, is_untouched(done)) == (by_copies("escalated"), True)
    if COPIES:
        assert (done.reason, [each.step for each in done.history.transitions].count("corrected")) == (
            "escalated",
            3,
        )
        assert "test_double" in done.detail


@pytest.mark.promise("BUILD-1")
@pytest.mark.promise("BUILD-5")
async def test_project_without_a_check_ends_unverified_with_a_proposal_that_the_user_can_apply(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"calc.py": WRONG})
    async with conversation(tmp_path, script([FIX]), mode="edit", answerable=False) as talk:
        result = await build_task(talk.app, TASK)
        assert result.state == by_copies("unverified")
        assert result.exit_status == (5 if COPIES else 1)
        assert (tmp_path / "calc.py").read_text() == WRONG
        if COPIES:
            await accept_proposal(talk.app, find_proposal(talk.app))
            assert (tmp_path / "calc.py").read_text() == RIGHT
        counts = build_counts(talk.app.log)
        assert (counts.builds, counts.complete, counts.needed_user) == (1, 0, 0)


@pytest.mark.parametrize(
    ("plan", "audit", "state"),
    [
        pytest.param({"objective": "short"}, {}, "failed", id="plan without an objective"),
        pytest.param({"steps": []}, {}, "failed", id="plan without a step"),
        pytest.param({"rollback": " "}, {}, "failed", id="plan without a rollback"),
        pytest.param(
            {"escalation": {"kind": "ambiguous", "reason": "Which?"}}, {}, "escalated", id="question"
        ),
        pytest.param({}, {"verdict": "rejected", "issues": ["No."]}, "failed", id="rejected"),
        pytest.param({}, {"escalation": {"kind": "security", "reason": "Why?"}}, "escalated", id="security"),
    ],
)
async def test_plan_that_does_not_pass_its_gates_is_never_executed(
    tmp_path: Path, plan: dict[str, Any], audit: dict[str, Any], state: str
) -> None:
    settings = '[checks]\ndetect = false\n[[checks.commands]]\nname = "tests"\nrun = "true"\n'
    answers = script([FIX], plan={**PLAN, **plan}, audit={**APPROVED, **audit})
    done = await build(tmp_path, answers, settings=settings)
    assert (done.state, is_untouched(done)) == (by_copies(state), True)
    started = [each.stage for each in done.events if isinstance(each, StageStarted)]
    assert "execute" not in started
    if COPIES:
        times = {"rejected": 3}.get(audit.get("verdict", ""), 1 if state == "escalated" else 2)
        assert started.count("plan") == times


@pytest.mark.promise("BUILD-6")
async def test_risky_plan_waits_for_the_user_and_conditions_of_the_audit_reach_the_code(
    tmp_path: Path,
) -> None:
    risky = {**PLAN, "risks": [{"risk": "Callers may rely on it", "level": "high"}]}
    audit = {**APPROVED, "verdict": "conditional", "issues": ["Keep the signature of double."]}
    met = json.dumps({"conditions": [{"number": 1, "met": True, "why": "calc.py"}]})
    reread = {"when": "Output of assemble.diff", "text": met}
    write(tmp_path, PROJECT)
    answers = [reread, *script([FIX], plan=risky, audit=audit)]
    async with conversation(tmp_path, answers, mode="edit") as talk:
        await talk.send(SendMessage(text=TASK, route="build"))
        end = await talk.until(TurnFinished)
        assert end.reason == ("waiting" if COPIES else "failed")
        assert (tmp_path / "calc.py").read_text() == WRONG
        if COPIES:
            assert Build(tmp_path, talk, end).state == "paused"
            await talk.turn("1")
            assert (tmp_path / "calc.py").read_text() == RIGHT
            assert build_counts(talk.app.log).needed_user == 1
            execute, reread_of = (request.messages[-1] for request in talk.requests[-2:])
            assert isinstance(execute, UserTurn)
            assert isinstance(reread_of, UserTurn)
            assert "Keep the signature of double." in execute.text
            assert "+    return number * 2" in reread_of.text


WORDS = """\
[checks]
detect = false
skip = ["consistency"]
"""
WORDS += "".join(
    f'[[checks.commands]]\nname = "{word}"\nrun = "! grep -o {word} calc.py"\n'
    for word in ("AAA", "BBB", "CCC")
)


@pytest.mark.promise("BUILD-19")
async def test_issues_count_as_corrected_only_if_the_files_kept_at_the_end_do_not_have_them(
    tmp_path: Path,
) -> None:
    # The second round corrects one issue and makes another; all later answers cannot be applied.
    rounds = [replaced("number + 1", "number + 2  # AAA BBB")], [replaced("AAA", "CCC")]
    write(tmp_path, PROJECT)
    async with conversation(tmp_path, script(*rounds), mode="edit", answerable=False, settings=WORDS) as talk:
        result = await build_task(talk.app, TASK)
        counts = build_counts(talk.app.log)
    if COPIES:
        assert result.state == "escalated"
        assert [(each.strategy, len(each.problems)) for each in result.rounds] == [
            ("plan", 2),
            ("tests+coverage", 2),
            ("tests+coverage", 1),
            ("tests+coverage", 1),
        ]
        assert (counts.issues, counts.corrected, counts.needed_user) == (2, 1, 1)


CANDIDATES = """\
[checks]
detect = false
skip = ["consistency"]
[[checks.commands]]
name = "half"
run = "grep -q 'number // 2' calc.py"
[[checks.commands]]
name = "double"
run = "grep -q 'number \\\\* 2' calc.py || grep -q 'number + 1' calc.py"
[build]
candidates = 3
"""


@pytest.mark.promise("BUILD-10")
async def test_candidates_start_from_the_same_files_and_the_first_that_passes_is_kept(tmp_path: Path) -> None:
    # Each edits the untouched file: an edit on top of an earlier candidate would not be found.
    rounds = [[replaced("number + 1", f"number + {each}")] for each in (5, 6)]
    write(tmp_path, PROJECT)
    async with conversation(
        tmp_path, script(*rounds, [FIX]), mode="edit", answerable=False, settings=CANDIDATES
    ) as talk:
        result = await build_task(talk.app, TASK)
        assert result.state == COMPLETE
        if COPIES:
            assert (result.candidates, result.corrections) == (3, 0)
            asked = [each for each in talk.requests if each.temperature is not None]
            assert [each.temperature for each in asked] == [0.3, 0.6]
            shown = asked[-1].messages[-1]
            assert isinstance(shown, UserTurn)
            assert "Your last answer" not in shown.text
            assert result.tokens == 15 * 5  # a plan, an audit and three candidates
            assert (tmp_path / "calc.py").read_text() == RIGHT


@pytest.mark.promise("BUILD-10")
async def test_best_candidate_is_corrected_where_none_passes(tmp_path: Path) -> None:
    two_wrong = [replaced("number + 1", "number + 5"), WORSE]
    one_wrong = [replaced("number + 1", "number + 6")]
    third = [replaced("number + 1", "number + 7"), WORSE]
    correction = [replaced("number + 6", "number * 2")]
    done = await build(tmp_path, script(two_wrong, one_wrong, third, correction), settings=CANDIDATES)
    assert done.state == COMPLETE
    assert done.text("calc.py") == (RIGHT if COPIES else WRONG)


async def test_failure_that_was_there_before_need_not_be_fixed_by_another_task(tmp_path: Path) -> None:
    rounding = replaced("number // 2", "int(number // 2)")
    plan = {**PLAN, "objective": "half returns a plain number"}
    done = await build(
        tmp_path, script([rounding], plan=plan), task="Let half in calc.py return a plain int.", settings=""
    )
    assert done.state == COMPLETE


@pytest.mark.promise("BUILD-8")
async def test_what_the_linter_can_fix_itself_needs_no_correction_by_the_model(tmp_path: Path) -> None:
    files = {"pyproject.toml": "[tool.ruff]\n", ".gitignore": ".venv\n", ".venv/pyvenv.cfg": ""}
    root = write(tmp_path / "shop", files)
    (root / ".venv/bin").mkdir()
    (root / ".venv/bin/ruff").symlink_to(Path(sys.executable).parent / "ruff")
    unused = {"form": "create", "path": "tax.py", "text": "import os\n\nRATE = 20\n"}
    step = {"kind": "create-file", "description": "The rate", "targets": ["tax.py"]}
    answers = script([unused], plan={**PLAN, "objective": "there is a tax rate", "steps": [step]})
    done = await build(root, answers, task="Add tax.py with RATE.", files={})
    assert done.state == COMPLETE
    if COPIES:
        assert done.text("tax.py").strip() == "RATE = 20"
        assert "corrected" not in [each.step for each in done.history.transitions]


async def test_failing_test_that_blames_a_line_which_the_task_changes_must_pass(tmp_path: Path) -> None:
    other = replaced("number + 1", "number + 2")
    done = await build(tmp_path, script([other]), task="Let double in calc.py be different.", settings="")
    assert (done.state, is_untouched(done)) == (by_copies("escalated"), True)
    told = " ".join(each.why for each in done.history.transitions)
    assert ("test_double failed before, and still fails" in told) == COPIES


@pytest.mark.promise("BUILD-3")
async def test_proposed_file_with_another_base_is_refused(tmp_path: Path) -> None:
    checks = ProposalChecks(checks_of(write(tmp_path, PROJECT)))
    if COPIES:
        with pytest.raises(PathProblem, match=r"calc\.py was changed by somebody else"):
            async with checks.tree([ProposedFile("calc.py", RIGHT, "0" * 64)]):
                pass


def test_every_end_is_a_state_and_only_complete_exits_with_zero() -> None:
    from handrail.app.builds.build import BuildResult

    results = [BuildResult(state=state, task="", session_id="", run_id="") for state in ENDS]
    assert [each.state for each in results if each.exit_status == 0] == ["complete"]
