import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.server import Server
from bench.wire import Said

CALL = Said(tool="read", arguments={"path": "a.py"})


def post(url: str, path: str, body: dict[str, Any], *, chunked: bool = False) -> bytes:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    data = json.dumps(body).encode()
    halves = iter((data[:7], data[7:]))
    connection.request("POST", f"/v1{path}", halves if chunked else data, encode_chunked=chunked)
    answer = connection.getresponse().read()
    connection.close()
    return answer


def events(answer: bytes) -> list[dict[str, Any]]:
    lines = [
        line.removeprefix("data: ") for line in answer.decode().splitlines() if line.startswith("data: ")
    ]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_each_form_carries_the_same_call() -> None:
    with Server() as server:
        server.begin(lambda _number, _request: CALL)
        whole = json.loads(post(server.url, "/chat/completions", {}))
        streamed = events(post(server.url, "/chat/completions", {"stream": True}))
        responses = events(post(server.url, "/responses", {"stream": True}))
        messages = events(post(server.url, "/messages", {"stream": True}))
    arguments = json.dumps(CALL.arguments)
    assert whole["choices"][0]["message"]["tool_calls"][0]["function"] == {
        "name": "read",
        "arguments": arguments,
    }
    assert streamed[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] == arguments
    assert responses[1]["item"] | {"name": "read", "arguments": arguments} == responses[1]["item"]
    assert messages[2]["delta"]["partial_json"] == arguments


@pytest.mark.parametrize("chunked", [False, True])
def test_the_size_is_that_of_the_body_however_it_is_sent(chunked: bool) -> None:
    body = {"messages": ["hi"]}
    with Server() as server:
        post(server.url, "/chat/completions", body, chunked=chunked)
        assert [asked.size for asked in server.asked] == [len(json.dumps(body))]


def test_a_title_is_answered_and_takes_no_step() -> None:
    with Server() as server:
        server.begin(lambda number, request: Said(str(number)) if request.get("tools") else None)
        post(server.url, "/chat/completions", {})
        answer = json.loads(post(server.url, "/chat/completions", {"tools": [1]}))
        assert answer["choices"][0]["message"]["content"] == "0"
        assert len(server.asked) == 1
