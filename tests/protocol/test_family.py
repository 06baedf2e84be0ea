import pytest
from pydantic import ValidationError

from handrail.protocol.commands import COMMAND, Cancel, SetMode


def test_what_is_read_is_the_kind_that_was_written_wherever_its_type_stands() -> None:
    assert COMMAND.read(SetMode(mode="plan").model_dump_json()) == SetMode(mode="plan")
    assert COMMAND.read('{"mode": "plan", "type": "set_mode"}') == SetMode(mode="plan")


@pytest.mark.parametrize(
    "data",
    [
        '{"type":"unheard_of"}',
        '{"type":"cancel","mode":"plan"}',
        '{"type":"cancel","type":"set_mode"}',
        '{"type":"',
        '{"mode":"plan"}',
        "[]",
        "",
    ],
)
def test_what_is_no_member_is_refused(data: str) -> None:
    with pytest.raises(ValidationError):
        COMMAND.read(data)


def test_a_type_inside_of_a_value_is_not_taken_for_its_own() -> None:
    assert COMMAND.read('{"by":"user","type":"cancel"}') == Cancel(by="user")
