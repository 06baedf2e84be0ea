"""Requests on record: to the byte, and no larger than what is new in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.config.settings import DatabaseSettings
from handrail.models.model import AssistantTurn, Message, Request, ToolResult, ToolSpec, UserTurn
from handrail.models.providers import Connection
from handrail.models.wire import anthropic, openai
from handrail.models.wire.transport import body_pieces
from handrail.protocol.values import ToolCall
from handrail.storage.event_log import Log
from handrail.storage.log_repair import open_log
from handrail.storage.request_bytes import PieceChain, chain_hashes, read_chain

TOOLS = (ToolSpec("read", "Read a file. " * 100, {"type": "object"}),)
MINE = Connection(name="mine", protocol="openai", base_url="http://127.0.0.1:1/v1")
BODIES = {
    "openai": lambda request: openai.request_body(MINE, "m", request),
    "anthropic": lambda request: anthropic.request_body("m", request),
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def turn(number: int) -> list[Message]:
    call = ToolCall(f"call_{number}", "read", {"path": f"f{number}.py"})
    return [
        UserTurn(f"Question {number}: " + f"why {number} " * 60),
        AssistantTurn("I look.", (call,)),
        ToolResult(call.id, "read", f"line of file {number}\n" * 80),
        AssistantTurn(f"Because of {number}."),
    ]


def store(log: Log, body: dict[str, Any]) -> str:
    chained = log.requests.chain(body_pieces(body))
    log.append("session:s", [], blobs=chained.blobs)
    log.requests.stored(chained)
    return chained.head


@given(body=st.dictionaries(st.text(max_size=5) | st.just("messages"), VALUES, max_size=4))
def test_pieces_are_the_body_to_the_byte(body: dict[str, Any]) -> None:
    body["messages"] = value if isinstance(value := body.get("messages"), list) else []
    whole = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    assert b"".join(body_pieces(body)) == whole


@pytest.mark.promise("STORE-40")
@pytest.mark.parametrize("wire", BODIES)
def test_two_hundred_growing_requests_cost_what_is_new_and_come_back_to_the_byte(
    tmp_path: Path, database: DatabaseSettings, wire: str
) -> None:
    """Twice the turns take twice the space, and not four times; so does what they add to the log's file."""
    log = open_log(tmp_path, database, tmp_path)
    messages: list[Message] = []
    sizes, contents, heads = [0], [0], {}
    for number in range(200):
        messages += turn(number)
        for upto in (-3, -1):  # after the question, and after the result of the call
            body = BODIES[wire](Request("System. " * 200, tuple(messages[:upto]), TOOLS))
            heads[store(log, body)] = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        sizes.append(log.contents.room().size)
        contents.append(log.contents.room().contents)
    assert sizes[200] < 2.2 * sizes[100]
    assert contents[200] <= 2.2 * contents[100]
    assert sizes[200] < sum(map(len, heads.values())) / 100
    for head, whole in list(heads.items())[::37]:
        assert log.request(head) == whole
    log.close()


@pytest.mark.promise("STORE-40")
def test_another_process_stores_nothing_twice_and_a_lost_part_is_noticed(
    tmp_path: Path, database: DatabaseSettings
) -> None:
    log = open_log(tmp_path, database, tmp_path)
    pieces = [b"{", b"x" * 600, b"y", b"}"]
    first = log.requests.chain(pieces)
    log.append("session:s", [], blobs=first.blobs)
    again = PieceChain().chain(pieces)
    log.append("session:s", [], blobs=again.blobs)
    assert again.head == first.head
    assert log.contents.room().contents == 5
    assert set(chain_hashes(log.blob, first.head)) == set(log.contents.sizes())
    assert log.request(first.head) == b"".join(pieces)
    for lost in chain_hashes(log.blob, first.head):
        kept = {sha256: log.blob(sha256) for sha256 in log.contents.sizes() if sha256 != lost}
        assert read_chain(kept.get, first.head) is None
    log.close()


def test_failed_commit_is_not_taken_for_stored() -> None:
    chain = PieceChain()
    first = chain.chain([b"a", b"b"])
    assert chain.chain([b"a", b"b"]).blobs == first.blobs
    chain.stored(first)
    assert chain.chain([b"a", b"b"]).blobs == []
    assert len(chain.chain([b"a", b"b", b"c"]).blobs) == 1
