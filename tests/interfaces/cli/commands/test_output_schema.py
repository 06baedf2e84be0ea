"""`handrail run --output-schema`: the answer is JSON that fits, or the exit status says no."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run, script

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 1}, "names": {"type": "array"}},
    "required": ["total"],
    "additionalProperties": False,
}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return str(tmp_path / "schema.json")


@pytest.mark.promise("TERM-60")
@pytest.mark.parametrize("route", ["agent", "chat"])
def test_only_the_valid_json_is_printed(route: str, tmp_path: Path, schema: str) -> None:
    plan = {"when": "Question:", "text": '{"patterns": [], "urls": [], "mentions": [], "todos": []}'}
    model = script(tmp_path, plan, {"text": 'Here it is:\n```json\n{"total": 3, "names": ["ü"]}\n```\n'})
    done = run("run", "count", "--output-schema", schema, "--route", route, "--model", model, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, '{"total": 3, "names": ["\\u00fc"]}\n'), done.stderr


@pytest.mark.promise("TERM-60")
def test_an_answer_that_does_not_fit_is_asked_for_once_more(tmp_path: Path, schema: str) -> None:
    read = {"calls": [{"name": "read", "arguments": {"path": "schema.json"}}]}
    told = {"when": "$.total: 0 is less than the minimum of 1", "text": '{"total": 2}'}
    model = script(tmp_path, told, read, {"text": '{"total": 0}'})
    done = run("run", "count", "--output-schema", schema, "--json", "--model", model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (accepted,) = [each for each in events if each["type"] == "output_accepted"]
    assert accepted["output"] == '{"total": 2}'
    again = script(tmp_path, read, {"text": '{"total": 0}'}, {"text": '{"total": "many", "more": 1}'})
    failed = run("run", "count", "--output-schema", schema, "--model", again, cwd=tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    words = " ".join(failed.stderr.split())
    assert "does not fit the schema" in words
    assert "'more' was unexpected" in words


@pytest.mark.promise("TERM-60")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"type": "objekt"}', "$.type: 'objekt' is not valid"),
        ('{"type": "object"\n "x": 1}', ":2: not valid JSON"),
        ("[]", "it is not a JSON object"),
        ('{"$ref": "https://example.org/other.json"}', "other documents are not loaded"),
        ('{"$ref": "#"}', "refers to itself without end"),
        ('{"$ref": "#/$defs/none"}', "which is not in it"),
        ('{"pattern": "("}', "'(' is not a 'regex'"),
        ('{"$schema": "https://example.org/my-schema"}', "no known version of JSON Schema"),
        pytest.param("[" * 90_000, "is not JSON", id="deep"),
    ],
)
def test_a_bad_schema_is_a_usage_error_and_nothing_is_asked(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    model = script(tmp_path, {"text": "{}"})
    done = run("run", "count", "--output-schema", "bad.json", "--model", model, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("handrail: bad.json")
    assert problem in done.stderr
    assert run("sessions", cwd=tmp_path).stdout == ""


def test_a_schema_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("run", "count", "--output-schema", "none.json", cwd=tmp_path)
    assert (done.returncode, "none.json cannot be read" in done.stderr) == (2, True)
