"""Answers by a schema: servers that refuse it, ignore it or break over it are asked in the next best way."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from handrail.config.settings import ConnectionSettings, Wire
from handrail.engine.pipeline import Stage
from handrail.engine.requests.model_requests import SideCall
from handrail.models.connect import connect
from handrail.models.model import Model, Request, Text, UserTurn
from handrail.models.structured_output import WayMemory, structured_text
from handrail.protocol.errors import Authenticate, FixRequest, ModelProblem, RetryLater, SchemaRefused
from handrail.protocol.events import RequestFailed, SideAnswered, StructuredOutputChanged
from handrail.sessions.session import event_from_row
from tests.engine.conversation import conversation
from tests.engine.scripted import PLAN
from tests.engine.test_stage_input import TOPICS, ask, catalogue
from tests.interfaces.cli.program import run
from tests.models.fake_server import FakeServer, Recorded, Reply, Said, body_for
from tests.tools.calls import open_session

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
PIPELINES = catalogue(Stage("plan", "ask", prompt="Name the topics.", schema=PLAN))
GOOD = '{"ok": true}'
Server = Callable[[str], Reply | str]
"""Gets how it was asked: `schema`, `json` or `prompt`; returns a refusal or the text of an answer."""


def way_of(body: dict[str, Any]) -> str:
    wanted = body.get("response_format") or body.get("output_config", {}).get("format", {})
    return {"json_schema": "schema", "json_object": "json", None: "prompt"}[wanted.get("type")]


def serve(server: Server) -> FakeServer:
    def reply(request: Recorded) -> Reply:
        said = server(way_of(request.json))
        return Reply(body_for(request.path, Said(text=(said,)))) if isinstance(said, str) else said

    return FakeServer(reply)


def refusal(status: int, body: object) -> Reply:
    data = body if isinstance(body, str) else json.dumps(body)
    return Reply(data.encode(), status=status, content_type="application/json")


def ways(server: FakeServer) -> list[str]:
    posts = (each for each in server.requests if each.path.endswith(("/completions", "/messages")))
    return [way_of(each.json) for each in posts]


async def model_of(server: FakeServer, data: Path, protocol: Wire = "openai", **more: Any) -> Model:
    settings = ConnectionSettings(
        protocol=protocol,
        base_url=f"{server.url}{'/v1' if protocol == 'openai' else ''}",
        context_window=9_000,
        native_tools=True,
        images=False,
        **more,
    )
    remember = partial(WayMemory, data)
    return await connect("mine/m", environment={}, settings={"mine": settings}, remember=remember)


async def answer(model: Model) -> str:
    """One structured request, as often as the engine would repeat it at once."""
    request = Request("Answer in JSON.", (UserTurn("ok?"),), output_schema=SCHEMA)
    for _ in range(4):
        try:
            return "".join([part.text async for part in model.stream(request) if isinstance(part, Text)])
        except SchemaRefused:
            continue
    raise AssertionError("it was repeated without end")


REFUSALS = [
    (400, {"error": {"message": "response_format json_schema is not supported"}}),
    (400, {"error": "Unknown field"}),
    (400, "Bad Request"),
    (400, ""),
    (422, {"detail": [{"loc": ["body", "response_format", "type"], "msg": "unexpected value"}]}),
    (422, {"detail": "invalid"}),
    (404, {"error": {"message": "No endpoints found that support structured outputs: json_schema"}}),
    (415, {"error": "unsupported"}),
    (500, {"error": {"message": "failed to parse grammar", "type": "server_error"}}),
    (501, "not implemented"),
]


@pytest.mark.promise("MOD-60")
@pytest.mark.parametrize(("status", "body"), REFUSALS)
@pytest.mark.parametrize("takes_json", [True, False])
async def test_a_server_that_refuses_schemas_is_asked_in_json_mode_or_by_the_prompt_and_remembered(
    tmp_path: Path, status: int, body: object, takes_json: bool
) -> None:
    taken = {"json", "prompt"} if takes_json else {"prompt"}
    tried = ["schema", "json"] if takes_json else ["schema", "json", "prompt"]
    with serve(lambda way: GOOD if way in taken else refusal(status, body)) as server:
        model = await model_of(server, tmp_path)
        assert await answer(model) == GOOD
        assert ways(server) == tried
        assert await answer(model) == GOOD
        assert ways(server) == [*tried, tried[-1]]
        assert model.capabilities.structured == tried[-1]
        await model.aclose()
        again = await model_of(server, tmp_path)  # as in another process
        assert again.capabilities.structured == tried[-1]
        assert await answer(again) == GOOD
        await again.aclose()
        assert ways(server)[len(tried) + 1 :] == [tried[-1]]


@pytest.mark.promise("MOD-60")
async def test_anthropic_has_no_json_mode(tmp_path: Path) -> None:
    refused = refusal(400, {"type": "error", "error": {"message": "output_config: Extra inputs"}})
    with serve(lambda way: GOOD if way == "prompt" else refused) as server:
        model = await model_of(server, tmp_path, "anthropic")
        assert await answer(model) == GOOD
        assert ways(server) == ["schema", "prompt"]
        await model.aclose()


@pytest.mark.promise("MOD-60")
@pytest.mark.parametrize("ignored", ["It is ok.", f"```json\n{GOOD}\n```", "{}", "[1]", '{"ok": tr'])
async def test_a_server_that_ignores_the_schema_keeps_its_answer_and_is_asked_otherwise_next(
    tmp_path: Path, ignored: str
) -> None:
    with serve(lambda way: ignored if way == "schema" else GOOD) as server:
        model = await model_of(server, tmp_path)
        assert await answer(model) == ignored
        assert model.capabilities.structured == "json"
        assert [await answer(model), await answer(model)] == [GOOD, GOOD]
        assert ways(server) == ["schema", "json", "json"]
        await model.aclose()


async def test_one_that_follows_no_way_ends_with_the_prompt_alone(tmp_path: Path) -> None:
    with serve(lambda _: "I would rather talk.") as server:
        model = await model_of(server, tmp_path)
        for _ in range(4):
            await answer(model)
        assert ways(server) == ["schema", "json", "prompt", "prompt"]
        await model.aclose()


@pytest.mark.promise("MOD-61")
@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (refusal(400, {"error": {"message": "messages.0 is not valid"}}), FixRequest),
        (refusal(422, {"detail": [{"input": {"response_format": {"type": "json_schema"}}}]}), FixRequest),
        (refusal(400, {"error": {"message": "prompt is too long"}}), FixRequest),
        (refusal(404, {"error": {"message": "model 'm' not found"}}), FixRequest),
        (refusal(401, {"error": {"message": "response_format: who are you"}}), Authenticate),
        (refusal(429, {"error": {"message": "slow down"}}), RetryLater),
        (refusal(503, {"error": {"message": "busy"}}), RetryLater),
    ],
)
async def test_what_is_refused_for_another_reason_changes_nothing(
    tmp_path: Path, refused: Reply, error: type[ModelProblem]
) -> None:
    broken = True
    with serve(lambda _: refused if broken else GOOD) as server:
        model = await model_of(server, tmp_path)
        with pytest.raises(error) as met:
            await answer(model)
        assert not isinstance(met.value, SchemaRefused)
        broken = False
        assert await answer(model) == GOOD
        assert ways(server)[-1] == "schema"
        assert model.capabilities.structured == "schema"
        await model.aclose()


@pytest.mark.promise("MOD-61")
async def test_one_server_error_is_no_reason_and_two_in_a_row_are_for_this_process(
    tmp_path: Path,
) -> None:
    with serve(lambda way: GOOD if way != "schema" else refusal(500, "oops")) as server:
        model = await model_of(server, tmp_path)
        with pytest.raises(RetryLater) as met:
            await answer(model)
        assert not isinstance(met.value, SchemaRefused)
        assert await answer(model) == GOOD
        assert ways(server) == ["schema", "schema", "json"]
        await model.aclose()
        again = await model_of(server, tmp_path)
        assert again.capabilities.structured == "schema"
        await again.aclose()


async def test_a_setting_switches_schemas_off(tmp_path: Path) -> None:
    with serve(lambda _: GOOD) as server:
        model = await model_of(server, tmp_path, schema_output=False)
        assert not model.capabilities.schema_output
        assert structured_text(model.capabilities) == "the prompt alone (schema_output = false)"
        await model.aclose()


# In a session


@pytest.mark.promise("MOD-62")
@pytest.mark.parametrize("retries", [0, 4])
async def test_a_turn_goes_on_in_another_way_and_says_so(tmp_path: Path, retries: int) -> None:
    with serve(lambda way: TOPICS if way == "prompt" else refusal(400, "no")) as server:
        settings = f'retries.count = {retries}\n[connections.mine]\nbase_url = "{server.url}/v1"\n'
        async with conversation(
            tmp_path, None, settings=settings, model="mine/m", catalogue=PIPELINES
        ) as talk:
            assert (await ask(talk)).reason == "answered"
            told = [event.message for event in talk.all(RequestFailed)]
        assert ways(server) == ["schema", "json", "prompt"]
    assert len(told) == 2
    assert "a JSON schema seems to be refused, so JSON mode is tried" in told[0]
    assert "JSON mode seems to be refused, so the prompt alone is tried" in told[1]


@pytest.mark.promise("MOD-62")
async def test_a_turn_whose_schema_is_ignored_says_so(tmp_path: Path) -> None:
    with serve(lambda way: "words" if way == "schema" else TOPICS) as server:
        settings = f'[connections.mine]\nbase_url = "{server.url}/v1"\n'
        async with conversation(
            tmp_path, None, settings=settings, model="mine/m", catalogue=PIPELINES
        ) as talk:
            assert (await ask(talk)).reason == "answered"
            (changed,) = talk.all(StructuredOutputChanged)
        assert (changed.model, changed.way) == ("mine/m", "json")
        assert ways(server) == ["schema", "json"]


@pytest.mark.promise("MOD-62")
def test_the_doctor_tries_it_anew_and_model_says_what_is_in_use(tmp_path: Path) -> None:
    refuses = True
    with serve(lambda way: refusal(400, "no") if refuses and way == "schema" else GOOD) as server:
        base = f"{server.url}/v1"
        assert run("config", "set", "connections.mine.base_url", base, cwd=tmp_path).returncode == 0
        told = [run(*words, "--model", "mine/m", cwd=tmp_path).stdout for words in (("doctor",), ("doctor",))]
        assert all("JSON mode (the server takes no schema)" in each for each in told)
        assert run("model", "mine/m", cwd=tmp_path).returncode == 0
        assert "JSON mode" in run("model", cwd=tmp_path).stdout
        refuses = False
        assert "by a JSON schema" in run("doctor", cwd=tmp_path).stdout
        assert "by a JSON schema" in run("model", cwd=tmp_path).stdout


@pytest.mark.promise("MOD-62")
async def test_a_side_question_is_repeated_in_another_way_and_both_are_on_record(tmp_path: Path) -> None:
    session = open_session(tmp_path / "log", tmp_path, "ask", "hello")
    with serve(lambda way: GOOD if way == "json" else refusal(400, "no")) as server:
        model = await model_of(server, tmp_path)
        side = SideCall(session, model, "fast", lambda _model, _usage: 0.0)
        request = Request("Answer in JSON.", (UserTurn("ok?"),), output_schema=SCHEMA)
        assert (await side.ask(request, "route")).text == GOOD
        await model.aclose()
    ends = [event_from_row(row).event for row in session.log.read(session.stream)]
    problems = [event.problem for event in ends if isinstance(event, SideAnswered)]
    assert [bool(each) for each in problems] == [True, False]
    assert "JSON mode is tried" in problems[0]
    session.release()
    session.log.close()
