"""The acceptance cases, ours and, where they are there, those kept beside the repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.run import results

HERE = Path(__file__).parent
BESIDE = HERE.parents[2] / "shared" / "corpus"
FILES = [HERE / "edits.jsonl", BESIDE / "edits.jsonl"]
COMMANDS = [HERE / "commands.jsonl", BESIDE / "commands.jsonl"]
PATHS = [HERE / "paths.jsonl", BESIDE / "paths.jsonl"]


@pytest.mark.promise("CHG-35")
@pytest.mark.parametrize("file", [file for file in FILES if file.exists()], ids=lambda file: file.parent.name)
def test_no_case_that_must_hold_is_wrong_and_few_of_the_others(file: Path) -> None:
    found = list(results("edits", file))
    assert [
        result.case["id"] for result in found if not result.right and result.case["level"] == "must"
    ] == []
    should = [result for result in found if result.case["level"] == "should"]
    wrong = [result.case["id"] for result in should if not result.right]
    assert len(wrong) <= len(should) * 0.03, wrong


@pytest.mark.promise("POL-13")
@pytest.mark.parametrize(
    "file", [file for file in COMMANDS if file.exists()], ids=lambda file: str(file.parent.name)
)
def test_no_command_runs_unasked_that_must_not_and_few_are_asked_about_in_vain(file: Path) -> None:
    found = list(results("commands", file))
    wrong = {
        level: [each.case["id"] for each in found if each.case["level"] == level and not each.right]
        for level in ("must", "should")
    }
    assert wrong["must"] == []
    assert len(wrong["should"]) <= 0.03 * sum(each.case["level"] == "should" for each in found), wrong[
        "should"
    ]


@pytest.mark.promise("POL-21")
@pytest.mark.parametrize(
    "file", [file for file in PATHS if file.exists()], ids=lambda file: str(file.parent.name)
)
def test_no_path_is_judged_wrong_that_must_not_be(file: Path) -> None:
    assert [result.case["id"] for result in results("paths", file) if not result.right] == []


def test_the_runner_prints_a_line_a_case_and_the_totals(tmp_path: Path) -> None:
    cases = (HERE / "edits.jsonl").read_text().splitlines()[:3]
    (tmp_path / "some.jsonl").write_text("\n".join(cases))
    command = [sys.executable, str(HERE / "run.py"), "edits", str(tmp_path / "some.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    *lines, totals = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == [json.loads(case)["id"] for case in cases]
    assert {"got", "reason"} <= lines[0].keys()
    assert len(lines[0]["content_sha256"]) == 64
    assert totals["total"] == 3
