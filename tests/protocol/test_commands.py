import pytest
from msgspec import DecodeError

from handrail.protocol.commands import COMMAND, Cancel, SetMode
from handrail.protocol.values import to_json


def test_what_is_read_is_the_kind_that_was_written_wherever_its_type_stands() -> None:
    assert COMMAND.decode(to_json(SetMode(mode="plan"))) == SetMode(mode="plan")
    assert COMMAND.decode('{"mode": "plan", "type": "set_mode"}') == SetMode(mode="plan")


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
    with pytest.raises(DecodeError):
        COMMAND.decode(data)


def test_a_type_inside_of_a_value_is_not_taken_for_its_own() -> None:
    assert COMMAND.decode('{"by":"user","type":"cancel"}') == Cancel(by="user")
