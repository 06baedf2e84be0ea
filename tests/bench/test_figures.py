import pytest

from bench.commits import counted
from bench.figures import Measured, missed, table

RESULT = "INSERT INTO events VALUES ('s', 5, 'tool_finished')"


def test_commits_are_counted_from_the_result_and_not_from_the_start_of_the_call() -> None:
    start = [(1.0, "INSERT INTO events VALUES ('s', 4, 'tool_started')"), (1.1, "COMMIT")]
    end = [(1.2, RESULT), (1.3, "COMMIT"), (1.4, "INSERT INTO events"), (1.5, "COMMIT"), (2.5, "COMMIT")]
    assert counted([*start, *end], [(0.9, 2.0)]) == pytest.approx((2, 800.0))


def test_a_gap_without_a_result_is_no_measurement() -> None:
    with pytest.raises(ValueError, match="no tool's result"):
        counted([(1.0, "COMMIT")], [(0.5, 2.0)])


def test_what_is_missed_is_told_by_ratio_and_by_growth() -> None:
    small, large = Measured("handrail", 5), Measured("handrail", 20_000)
    small.add("first", 200.0, 300.0, 400.0, python=10.0)
    large.add("first", 200.0, python=10.0)
    small.add("memory", 40.0)
    large.add("memory", 48.0)
    sentences = missed([small, large])
    assert len(sentences) == 2
    assert sentences[0].startswith("start to first request with 5 files: 300 ms (30.0x)")
    assert sentences[1] == "peak memory grows with the repository: 1.20 times"


def test_what_a_peer_could_not_do_is_no_number() -> None:
    peer = Measured("peer", 5, problems={"whole": "it did not edit the file"})
    row = table([peer]).splitlines()[2]
    assert "failed" in row
    assert not any(character.isdigit() for character in row.replace("| 5 |", ""))
