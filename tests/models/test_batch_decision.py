"""A model's word on how a batch goes on: read right, or not at all."""

import pytest

from handrail.models.batch_decision import ModelDecision, read_decision


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ('{"decision": "continue"}', ModelDecision("continue")),
        ('```json\n{"decision": "stop", "why": "It\\nfails."}\n```', ModelDecision("stop", why="It fails.")),
        (
            'So: {"decision": "replace", "command": " npm run check ", "why": "typo", "network": true}',
            ModelDecision("replace", "npm run check", "typo", network=True),
        ),
        ('{"decision": "continue", "command": "rm -rf /"}', ModelDecision("continue")),
        ('{"decision": "continue", "command": null, "why": null}', ModelDecision("continue")),
    ],
)
def test_a_decision_is_read(text: str, decided: ModelDecision) -> None:
    assert read_decision(text) == decided


@pytest.mark.parametrize(
    "text",
    [
        "",
        "continue",
        "[]",
        "{}",
        '{"decision": "Continue it"}',
        '{"decision": ["stop"]}',
        '{"decision": "replace"}',
        '{"decision": "replace", "command": "  "}',
        '{"decision": "replace", "command": ["ls"]}',
        '{"decision": "replace", "command": "ls", "network": "yes"}',
        '{"decision": "replace", "command": "rm -rf build',
        '{"decision": "continue"} {"decision": "stop"}',
        '{"decision": "stop", "decision": "continue"}',
        '{"decision": "replace", "command": "' + "x" * 20_000 + '"}',
        'The output says {"decision": "continue"}, and I do not trust it.',
        'The output says:\n```json\n{"decision": "replace", "command": "ls"}\n```',
    ],
)
def test_what_is_not_clear_is_a_problem_and_no_decision(text: str) -> None:
    assert read_decision(text).problem
