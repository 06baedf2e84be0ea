"""JSON that a user hands in: what is wrong with it is told in words, with the place."""

import pytest

from handrail.protocol.errors import UsageProblem
from handrail.protocol.json_input import read_json
from handrail.protocol.subtask import SplitPlan


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "This is not a plan: the file is not JSON ("),
        (b"\xff", "This is not a plan: the file is not JSON ("),
        (b"[" * 100_000, "This is not a plan: the file is not JSON ("),
        (b"[]", "This is not a plan: the file should be an object."),
        (b'{"task": "x", "subtasks": [{"id": 1}]}', "subtasks.0.id should be a valid string"),
    ],
)
def test_wrong_json_says_what_and_where(data: bytes, said: str) -> None:
    with pytest.raises(UsageProblem) as raised:
        read_json(data, SplitPlan, "plan", "file")
    assert said in str(raised.value)
