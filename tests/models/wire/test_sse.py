"""Server-sent events are read right wherever the bytes are split."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handrail.models.wire.sse import ServerEvent, SseParser

STREAM = (
    "\ufeff: a comment\n\n"
    'event: one\ndata: {"text": "äöü 🌍"}\n\n'
    "data: first\r\ndata: second\r\n\r\n"
    "data:no space\rdata\r\r"
    "id: 7\nretry: 3\nunknown: x\n\n"
    "event: named but empty\n\n"
    "data: last\n\n"
).encode()
EVENTS = [
    ServerEvent("one", '{"text": "äöü 🌍"}'),
    ServerEvent("", "first\nsecond"),
    ServerEvent("", "no space\n"),
    ServerEvent("", "last"),
]


def read(pieces: list[bytes]) -> list[ServerEvent]:
    reader = SseParser()
    return [event for piece in pieces for event in reader.feed(piece)]


def test_every_single_cut_gives_the_same_events() -> None:
    for at in range(len(STREAM) + 1):
        assert read([STREAM[:at], b"", STREAM[at:]]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_cuts_give_the_same_events(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[a:b] for a, b in pairwise(edges)]) == EVENTS


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: x", b"data"]), max_size=12), st.integers(1, 3)
)
def test_line_ends_mean_the_same_whole_and_byte_by_byte(pieces: list[bytes], size: int) -> None:
    stream = b"".join(pieces)
    assert read([stream]) == read([stream[at : at + size] for at in range(0, len(stream), size)])


def test_event_without_its_blank_line_is_not_given() -> None:
    assert read([b"data: cut\n"]) == []
