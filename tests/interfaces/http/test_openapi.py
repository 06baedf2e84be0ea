"""The OpenAPI document says what the server does: generated requests find no difference."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.interfaces.http.api.table import ENDPOINTS
from tests.conftest import NO_SERVER
from tests.interfaces.http.serving import TOKEN, serving

pytestmark = pytest.mark.anyio

PROVIDERS = "".join(
    f'[connections.{name}]\nbase_url = "http://127.0.0.1:1/v1"\n'
    for name in ("anthropic", "openai", "xai", "openrouter", "gemini")
)
NOT_CALLED = "events$|doctor|download"
"""A stream without an end, a diagnosis of the machine, a download of a gigabyte."""
EXAMPLES = "10"
"""Random requests to each endpoint, the same in every run; beside them those at the limits of every value."""
REFUSALS = [400, 401, 403, 404, 405, 409, 413, 415, 431]
OF_TASKS = """
[[operations]]
include-path-regex = "/(tasks|llm|assistant)(/|$)"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 502]
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 502]
"""
"""Well-formed operations can be impossible, which their contract answers with 400; and a model can fail."""
FUZZ_SECONDS = 300.0


async def test_document_has_every_endpoint_once_and_every_reference_resolves(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        document = (await served.client.get("/openapi.json")).json()
        operations = [
            (method.upper(), path.removeprefix("/api/w/{workspace}").removeprefix("/api"), operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        assert sorted(each[:2] for each in operations) == sorted((e.method, e.path) for e in ENDPOINTS)
        ids = [operation["operationId"] for _, _, operation in operations]
        assert len(ids) == len(set(ids))

        def references(value: Any) -> list[str]:
            if isinstance(value, list):
                return [found for each in value for found in references(each)]
            if not isinstance(value, dict):
                return []
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for each in value.values() for found in references(each)]

        names = {each.removeprefix("#/components/schemas/") for each in references(document)}
        assert names <= document["components"]["schemas"].keys()
        assert {"RecordedEvent", "LiveText", "ErrorBody"} <= document["components"]["schemas"].keys()


@pytest.mark.promise("HTTP-9")
async def test_generated_requests_find_no_difference_between_document_and_server(
    tmp_path: Path, home: Path
) -> None:
    (home / "handrail").mkdir(mode=0o700)
    (home / "handrail" / "config.toml").write_text(NO_SERVER + PROVIDERS)
    write = {"calls": [{"name": "write", "arguments": {"path": "a.txt", "text": "one\n"}}]}
    anything = {"text": "ok", "when": ""}
    async with serving(tmp_path, write | {"when": "make it"}, anything) as served:
        session = await served.session(mode="edit", route="agent")
        await served.turn(session, "make it")
        settings = tmp_path / "schemathesis.toml"
        settings.write_text(
            f'[parameters]\nsession = "{session}"\nchange = "1"\nnumber = "1"\n'
            f"[checks.negative_data_rejection]\nexpected-statuses = {REFUSALS}\n{OF_TASKS}"
        )
        program = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run"]
        options = ["--exclude-path-regex", NOT_CALLED, "--phases=coverage,fuzzing", "-n", EXAMPLES]
        options += ["--generation-deterministic", "--no-color", "--warnings=off"]
        with anyio.fail_after(FUZZ_SECONDS):
            ran = await anyio.run_process(
                [*program, f"{served.url}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}", *options],
                check=False,
                cwd=tmp_path,
                env=os.environ | {"PYTHONPATH": "", "PYTHONWARNINGS": "ignore"},
            )
        assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
