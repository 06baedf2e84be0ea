"""Every adapter keeps the same promises, whatever the wire and wherever its bytes are cut."""

import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from handrail.models.model import CallPart, Deadlines, Finished, Part, RawBytes, Request, Text, UsagePart
from handrail.models.reading.collector import Answer, AnswerCollector, collect_answer
from handrail.models.wire import transport as wire_module
from handrail.protocol.errors import Authenticate, FixRequest, GiveUp, ModelProblem, RetryLater
from handrail.protocol.values import ToolCall, Usage
from tests.models.fake_server import FakeServer, Reply, Said
from tests.models.wires import CALL, FORMATS, KEY, SDK_FORMATS, WireFormat, model_at, request

pytestmark = pytest.mark.anyio

EXPECTED_CALL = ToolCall(id="call_1", name="read", arguments={"path": "ä/b.py", "lines": [1, 2]})


@pytest.fixture(params=FORMATS, ids=lambda wire: wire.name)
def own(request: pytest.FixtureRequest) -> WireFormat:
    """Protocols that we read ourselves."""
    return WireFormat(*request.param)


@pytest.fixture(params=(*FORMATS, *SDK_FORMATS), ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> WireFormat:
    return WireFormat(*request.param)


async def answer(wire: WireFormat, *replies: Reply | Said, asking: Request | None = None) -> Answer:
    answers = [each if isinstance(each, Reply) else Reply(wire.write(each)) for each in replies]
    with FakeServer(answers) as server:
        async with model_at(server, wire) as model:
            return await collect_answer(model.stream(asking or request()))


async def failure(
    wire: WireFormat, reply: Reply, asking: Request | None = None, models: tuple[str, ...] = ("test-model",)
) -> tuple[ModelProblem, list[Part]]:
    """The error that ends the stream, and the parts that came before it."""
    parts: list[Part] = []
    with FakeServer([reply], models=models) as server:
        async with model_at(server, wire) as model:
            error = await drained(model.stream(asking or request()), parts)
    assert error is not None
    assert KEY not in str(error)
    return error, parts


async def drained(stream: AsyncIterator[Part], into: list[Part]) -> ModelProblem | None:
    """Reads to the end, whatever it is, and gives the error if it is one."""
    try:
        async for part in stream:
            into.append(part)  # noqa: PERF401
    except ModelProblem as problem:
        return problem
    return None


@pytest.mark.promise("MOD-1")
async def test_answer_comes_whole_with_thinking_calls_usage_and_raw_bytes(wire: WireFormat) -> None:
    said = Said(**{**CALL.__dict__, "calls": (*CALL.calls, ("call_2", "list", ""))})
    got = await answer(wire, said)
    assert got.text == "Ich öffne die Datei 🌍.\n"
    assert got.thinking == "Let me look…"
    assert got.calls == (EXPECTED_CALL, ToolCall(id="call_2", name="list"))
    assert got.usage == Usage(input_tokens=100, output_tokens=7, cache_read_tokens=40)
    assert got.finish == "tool_calls"
    assert got.raw == wire.write(said)


@pytest.mark.parametrize(
    ("said", "finish"),
    [("", "stop"), ("length", "length"), ("filtered", "filtered"), ("paused_by_provider", "cut")],
)
async def test_finish_reason_is_the_providers(wire: WireFormat, said: str, finish: str) -> None:
    if said == "filtered" and wire.name in {"mistral", "cohere"}:
        finish = "cut"  # they have no reason of this kind
    assert (await answer(wire, Said(text=("done",), finish=said))).finish == finish


@pytest.mark.promise("MOD-3")
@pytest.mark.parametrize(("said", "finish"), [("length", "length"), ("paused_by_provider", "cut")])
async def test_answer_that_is_not_whole_has_no_calls(wire: WireFormat, said: str, finish: str) -> None:
    got = await answer(wire, Said(**{**CALL.__dict__, "finish": said}))
    assert got.calls == ()
    assert got.finish == finish
    assert [line.split()[0] for line in got.blocked] == [
        call.name for call in (await answer(wire, CALL)).calls
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("step", [1, 2, 3, 7])
async def test_answer_is_the_same_however_its_bytes_are_split(
    own: WireFormat, newline: str, step: int
) -> None:
    body = own.write(CALL, newline)
    got = await answer(own, Reply(body, step=step))
    assert got._replace(raw=b"") == (await answer(own, CALL))._replace(raw=b"")
    assert got.raw.rstrip() == body.rstrip()


@pytest.mark.promise("MOD-2")
@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_stream_cut_at_any_byte_gives_no_call_and_whole_stream_gives_one(
    wire: WireFormat, framing: str
) -> None:
    body = wire.write(CALL)
    complete = completion_points(wire, body, framing)
    cut = 0

    def reply(_request: object) -> Reply:
        return Reply(body, cut=cut, framing=framing)  # type: ignore[arg-type]

    with FakeServer(reply) as server:
        async with model_at(server, wire) as model:
            # Each request of a library costs as much as ten of ours, so not every byte is the last one there.
            step = 41 if wire.provider else 1
            for cut in sorted({*range(0, len(body) + 1, step), *complete, len(body)}):
                collector = AnswerCollector()
                parts: list[Part] = []
                error = await drained(model.stream(request()), parts)
                for part in parts:
                    collector.add(part)
                got = collector.answer()
                if cut in complete:
                    assert error is None, cut
                    assert got.calls == (EXPECTED_CALL,)
                    assert [type(part) for part in parts[-2:]] == [CallPart, Finished]
                else:
                    assert isinstance(error, RetryLater), cut
                    assert error.billed or cut == 0
                    assert got.calls == ()
                    assert got.finish is None
                assert got.raw == body[: len(got.raw)]


FINISH_FIELDS = {"google": b'"finishReason"', "bedrock": b'"stopReason"'}
ENDS_BY_ITSELF = {"openai", "anthropic", "mistral"}
"""Answers that count as complete at their last event; libraries read most others to the response's end."""


def completion_points(wire: WireFormat, body: bytes, framing: str) -> range:
    """The cuts after which the answer counts as complete: the last event, or a clean end after the finish."""
    if wire.name != "anthropic" and framing == "close":
        finish = wire.after(body, FINISH_FIELDS.get(wire.name, b'"finish_reason": "'))
        # Mistral's library does not take a last event that is cut.
        return range(finish, len(body) + 1, len(body) - finish if wire.name == "mistral" else 1)
    return range(len(body), len(body) + (wire.name in ENDS_BY_ITSELF))


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ((), None),
        ((("retry-after", "7"),), 7.0),
        ((("retry-after-ms", "1500"), ("retry-after", "2")), 1.5),
        ((("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1m3s")), 63.0),
        ((("x-ratelimit-remaining-tokens", "5"), ("x-ratelimit-reset-tokens", "1m3s")), None),
    ],
)
@pytest.mark.promise("MOD-7")
async def test_rate_limit_means_retry_with_the_servers_own_delay(
    wire: WireFormat, headers: tuple[tuple[str, str], ...], delay: float | None
) -> None:
    body = b'{"error": {"type": "rate_limit_error", "message": "slow down"}}'
    error, parts = await failure(wire, json_reply(429, body, headers))
    assert isinstance(error, RetryLater)
    assert error.delay == delay
    assert not error.billed
    assert "slow down" in str(error)
    assert b"".join(part.data for part in parts if isinstance(part, RawBytes)) == body


def json_reply(status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    return Reply(body, status=status, headers=headers, content_type="application/json", framing="length")


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 529])
async def test_server_trouble_means_retry(own: WireFormat, status: int) -> None:
    error, _ = await failure(own, json_reply(status, b'{"error": {"message": "oh"}}'))
    assert isinstance(error, RetryLater)


async def test_wrong_key_says_which_variable_to_mend_and_never_the_key(wire: WireFormat) -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    error, _ = await failure(wire, json_reply(401, body))
    assert isinstance(error, Authenticate)
    assert "MINE_API_KEY" in str(error)


@pytest.mark.promise("MOD-18")
@pytest.mark.parametrize("key", [KEY, "0123456789abcdef0123456789abcdef", "aaaaaaaaaaaaab"])
@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize("status", [200, 307, 400, 403, 429, 500])
async def test_key_that_a_server_sends_back_is_nowhere(
    own: WireFormat, key: str, step: int, status: int
) -> None:
    said = json.dumps({"error": {"message": f"aaa{key} may not, says {key}", "code": status}}).encode()
    body = b"data: " + said + b"\n\n" + key[:-1].encode() if status == 200 else said
    location = (("location", f"http://elsewhere/?key={key}"),)
    kind = "text/event-stream" if status == 200 else "application/json"
    parts: list[Part] = []
    with FakeServer([Reply(body, status=status, step=step, headers=location, content_type=kind)]) as server:
        async with model_at(server, own, key=key) as model:
            error = await drained(model.stream(request()), parts)
    raw = b"".join(part.data for part in parts if isinstance(part, RawBytes))
    assert key not in str(error)
    assert key.encode() not in raw
    assert body.replace(key.encode(), b"[key]").startswith(raw)
    assert raw.count(b"[key]") == 2


async def test_key_where_a_long_message_is_cut_is_not_shown_in_part(wire: WireFormat) -> None:
    body = json.dumps({"error": {"message": "x" * 280 + "0123456789abcdef0123456789abcdef"}}).encode()
    with FakeServer([json_reply(500, body)]) as server:
        async with model_at(server, wire, key="0123456789abcdef0123456789abcdef") as model:
            error = await drained(model.stream(request()), [])
    assert "0123" not in str(error)


async def test_word_that_stands_for_no_key_is_left_in_the_text(wire: WireFormat) -> None:
    with FakeServer([Reply(wire.write(Said(text=("none ", "at all"))))]) as server:
        async with model_at(server, wire, key="none") as model:
            assert (await collect_answer(model.stream(request()))).text == "none at all"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, b'{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}'),
        (400, b'{"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}'),
        (402, b'{"error": {"message": "Insufficient credits"}}'),
    ],
)
async def test_empty_account_is_not_retried(own: WireFormat, status: int, body: bytes) -> None:
    error, _ = await failure(own, json_reply(status, body))
    assert isinstance(error, Authenticate)
    assert "credit" in str(error)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"error": {"code": "model_not_found", "message": "The model `test-modle` does not exist"}}'),
        (404, b'{"type": "error", "error": {"type": "not_found_error", "message": "model: test-modle"}}'),
        (400, b'{"error": {"message": "test-modle is not a valid model ID"}}'),
    ],
)
async def test_unknown_model_names_the_nearest_ones(own: WireFormat, status: int, body: bytes) -> None:
    error, _ = await failure(own, json_reply(status, body), models=("other", "test-mode"))
    assert isinstance(error, FixRequest)
    assert "test-mode" in str(error)
    assert not error.too_long


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error": {"code": "context_length_exceeded", "message": "too much"}}'),
        (400, b'{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}'),
        (413, b"too large"),
    ],
)
async def test_too_long_conversation_is_told_apart(own: WireFormat, status: int, body: bytes) -> None:
    error, _ = await failure(own, json_reply(status, body))
    assert isinstance(error, FixRequest)
    assert error.too_long


async def test_other_refusals_pass_the_providers_words_on(wire: WireFormat) -> None:
    error, _ = await failure(wire, json_reply(400, b'{"error": {"message": "tools.0.name: bad"}}'))
    assert isinstance(error, FixRequest)
    assert "tools.0.name: bad" in str(error)


async def test_redirect_is_not_followed(wire: WireFormat) -> None:
    error, _ = await failure(wire, Reply(status=307, headers=(("location", "http://elsewhere/"),)))
    assert isinstance(error, GiveUp)
    assert "http://elsewhere/" in str(error)


UNREADABLE = [b"data: {bad json\n\n", b"data: [1]\n\n", b"data: \xff\xfe\n\n", b'data: {"a"\n\n']


@pytest.mark.parametrize("body", UNREADABLE)
async def test_unreadable_event_means_retry(wire: WireFormat, body: bytes) -> None:
    begun = wire.write(CALL)
    error, _ = await failure(wire, Reply(begun[: wire.after(begun, b"Let me")] + body))
    assert isinstance(error, RetryLater)
    assert error.billed


@pytest.mark.parametrize(
    "body", [*UNREADABLE, b"Hello from the portal", b"event: hi\ndata: {}\n\n", b'{"id": 1}', b"\xff\xd8"]
)
@pytest.mark.parametrize("step", [0, 1])
async def test_answer_that_is_something_else_from_the_start_is_given_up(
    own: WireFormat, body: bytes, step: int
) -> None:
    error, _ = await failure(own, Reply(body, step=step))
    assert isinstance(error, GiveUp)
    assert "base_url" in str(error)
    assert " ".join(body.decode(errors="replace").split())[:12] in str(error)


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_server_trouble_says_what_to_do(own: WireFormat, status: int) -> None:
    error, _ = await failure(own, json_reply(status, b'{"error": {"message": "oh"}}'))
    assert "(oh)" in str(error)
    assert "or choose another model with --model." in str(error)


async def test_event_of_an_unexpected_shape_means_retry(own: WireFormat) -> None:
    odd = b'data: {"type": "content_block_delta", "choices": [{"delta": {"tool_calls": [7]}}]}\n\n'
    error, _ = await failure(own, Reply(odd + own.write(CALL)))
    assert isinstance(error, RetryLater)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, RetryLater),
        ({"code": 502, "message": "provider went away"}, RetryLater),
        ({"type": "server_error", "message": "oops"}, RetryLater),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, FixRequest),
        ({"type": "authentication_error", "message": "no"}, Authenticate),
    ],
)
async def test_error_inside_the_stream_is_understood(
    own: WireFormat, error: dict[str, object], kind: type[ModelProblem]
) -> None:
    event = b"event: error\ndata: " + json.dumps({"type": "error", "error": error}).encode() + b"\n\n"
    half = own.write(Said(text=("Hel", "lo")))
    body = half[: own.after(half, b"Hel")] + event
    found, parts = await failure(own, Reply(body))
    assert isinstance(found, kind)
    assert Text("Hel") in parts
    if isinstance(found, RetryLater):
        assert found.billed


@pytest.mark.promise("MOD-8")
@pytest.mark.parametrize(
    ("pace", "deadlines", "words"),
    [
        ({"silent_after": 0}, Deadlines(first_byte=0.2), "sent nothing within 0.2 s"),
        ({"silent_after": 20}, Deadlines(silence=0.2), "fell silent for 0.2 s"),
        ({"step": 1, "pause": 0.05}, Deadlines(whole=0.4), "within 0.4 s"),
    ],
    ids=["first byte", "silence", "drip"],
)
async def test_every_wait_has_its_deadline(
    wire: WireFormat, pace: dict[str, Any], deadlines: Deadlines, words: str
) -> None:
    error, _ = await failure(wire, Reply(wire.write(CALL), **pace), request(deadlines))
    assert isinstance(error, RetryLater)
    assert words in str(error)


async def test_server_that_is_not_there_means_retry(wire: WireFormat) -> None:
    with FakeServer([Reply()]) as server:
        async with model_at(server, wire) as model:
            server.stop()
            with pytest.raises(RetryLater, match="cannot be reached"):
                await collect_answer(model.stream(request()))


@pytest.mark.promise("MOD-9")
async def test_huge_answer_is_given_up_within_bounded_memory(
    own: WireFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "MAX_ANSWER_BYTES", 4_000_000)
    filler = b": " + b"x" * 65_000 + b"\n\n"
    with FakeServer([Reply(filler, repeat=10_000)]) as server:
        async with model_at(server, own) as model:
            gc.collect()
            tracemalloc.start()
            stream = model.stream(request())
            problem: ModelProblem | None = None
            try:
                async for _ in stream:
                    pass
            except GiveUp as given:
                problem = given
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert server.wait_until(lambda: server.open_connections == 0)
    assert "MB for one answer" in str(problem)
    assert peak < 6_000_000


async def test_line_without_an_end_is_capped(wire: WireFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "MAX_ANSWER_BYTES", 1_000_000)
    error, _ = await failure(wire, Reply(b"data: " + b"x" * 65_000, repeat=100))
    assert isinstance(error, GiveUp)


@pytest.mark.promise("MOD-10")
async def test_cancelled_stream_closes_the_socket(wire: WireFormat) -> None:
    body = wire.write(Said(text=("Hello",)))
    with FakeServer([Reply(body, silent_after=len(body) - 30)]) as server:
        async with model_at(server, wire) as model:
            with anyio.fail_after(50), anyio.CancelScope() as scope:
                async for part in model.stream(request()):
                    if isinstance(part, Text):
                        scope.cancel()
            assert server.wait_until(lambda: server.open_connections == 0)


async def test_closed_generator_closes_the_socket(wire: WireFormat) -> None:
    body = wire.write(Said(text=("Hello",)))
    with FakeServer([Reply(body, silent_after=len(body) - 30)]) as server:
        async with model_at(server, wire) as model:
            stream = model.stream(request())
            async for part in stream:
                if isinstance(part, Text):
                    break
            await stream.aclose()
            assert server.wait_until(lambda: server.open_connections == 0)


@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
async def test_answer_that_is_no_stream_points_at_the_base_url(wire: WireFormat, content_type: str) -> None:
    error, parts = await failure(wire, Reply(b"<html>Sign in</html>", content_type=content_type))
    assert isinstance(error, GiveUp)
    assert "base_url" in str(error)
    assert parts[1:] == [RawBytes(b"<html>Sign in</html>")]


async def test_error_with_status_200_is_still_an_error(wire: WireFormat) -> None:
    error, _ = await failure(wire, json_reply(200, b'{"error": {"code": 429, "message": "busy"}}'))
    assert isinstance(error, RetryLater)


async def test_compressed_answer_is_read(wire: WireFormat) -> None:
    got = await answer(wire, Reply(wire.write(CALL), compress=True, step=10))
    assert got.calls == (EXPECTED_CALL,)
    assert got.raw == wire.write(CALL)


async def test_stream_without_any_event_means_retry(wire: WireFormat) -> None:
    error, _ = await failure(wire, Reply(b""))
    assert isinstance(error, RetryLater)


async def test_connection_is_used_again_for_the_next_request(wire: WireFormat) -> None:
    with FakeServer([Reply(wire.write(CALL))]) as server:
        async with model_at(server, wire) as model:
            before = server.accepted
            for _ in range(3):
                await collect_answer(model.stream(request()))
            assert server.accepted == before + 1


async def test_parts_are_given_as_they_come(wire: WireFormat) -> None:
    body = wire.write(Said(text=("early",)))
    shown = wire.after(body, b"early")
    with FakeServer([Reply(body, silent_after=shown)]) as server:
        async with model_at(server, wire) as model:
            stream = model.stream(request())
            with anyio.fail_after(50):
                while True:
                    if await anext(stream) == Text("early"):
                        break
            await stream.aclose()


async def test_usage_comes_before_the_finish_and_nothing_after_it(wire: WireFormat) -> None:
    with FakeServer([Reply(wire.write(CALL))]) as server:
        async with model_at(server, wire) as model:
            parts = [part async for part in model.stream(request())]
    kinds = [type(part) for part in parts]
    assert kinds[-1] is Finished
    assert kinds.index(UsagePart) < kinds.index(Finished)
