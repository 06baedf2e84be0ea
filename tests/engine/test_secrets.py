"""Keys of models and other secrets: no command gets them, and no model is told them."""

import os
from pathlib import Path

import pytest

from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from handrail.protocol.events import RequestStarted, ToolFinished
from handrail.protocol.values import to_json
from tests.engine.conversation import call, conversation, run, words

pytestmark = pytest.mark.anyio
KEY = "0123456789abcdef"
SETTINGS = '[connections.corp]\nbase_url = "http://127.0.0.1:1/v1"\nkey_env = ["CORP_LLM"]\n'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORP_LLM", KEY)


@pytest.mark.promise("TOOL-8")
async def test_the_key_of_a_connection_is_not_in_the_environment_of_commands(tmp_path: Path) -> None:
    answers = [run("env"), {"text": "done"}]
    async with conversation(tmp_path, answers, settings=SETTINGS, mode="auto", allow=("env",)) as talk:
        await talk.turn("go")
    (finished,) = talk.all(ToolFinished)
    assert f"PATH={os.environ['PATH']}"[:10] in finished.content
    assert "CORP_LLM" not in finished.content


@pytest.mark.promise("TOOL-14")
async def test_a_known_secret_is_not_told_to_a_model_wherever_it_stands(tmp_path: Path, home: Path) -> None:
    (home / "handrail").mkdir()
    Credentials(find_places(os.environ), os.environ).set("model/corp", "key-in-a-file")
    text = f"one {KEY} two key-in-a-file three\n"
    for name in ("notes.txt", "AGENTS.md", "mentioned.txt"):
        (tmp_path / name).write_text(text)
    answers = [call("read", path="notes.txt"), run("cat notes.txt"), {"text": "done"}]
    async with conversation(tmp_path, answers, settings=SETTINGS, mode="auto", allow=("cat",)) as talk:
        await talk.turn(f"look at @mentioned.txt, {KEY}")
        stored = "\n".join(to_json(each) for each in talk.all(ToolFinished))
        bodies = [talk.app.log.request(each.body) or b"" for each in talk.all(RequestStarted)]
        stored += b"\n".join(bodies).decode()
    assert stored.count("[secret CORP_LLM]") > len(bodies)
    told = "\n".join(request.system + words(request) for request in talk.requests)
    assert told.count("one [secret CORP_LLM] two [secret key of corp] three") >= 6
    for secret in (KEY, "key-in-a-file"):
        assert secret not in told
        assert secret not in stored


async def test_a_mark_is_not_written_in_the_place_of_the_secret(tmp_path: Path) -> None:
    file = tmp_path / "settings.txt"
    file.write_text(f"key {KEY}\nmode slow\n")
    answers = [
        call("read", path="settings.txt"),
        call("write", path="settings.txt", text="key [secret CORP_LLM]\nmode fast\n"),
        call("edit", path="settings.txt", edits=[{"search": "slow", "replace": "fast"}]),
        {"text": "done"},
    ]
    async with conversation(tmp_path, answers, settings=SETTINGS, mode="edit") as talk:
        await talk.turn("go")
    assert [each.status for each in talk.all(ToolFinished)] == ["ok", "refused", "ok"]
    assert file.read_text() == f"key {KEY}\nmode fast\n"


@pytest.mark.promise("TOOL-14")
async def test_secrets_of_env_files_are_not_told_wherever_they_were_copied_to(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "export SHOP_TOKEN='sk-in-a-dotenv'\nNODE_ENV=development\nHOST=localhost:80\n"
        'A_KEY=bare-1234 # a comment\nB_KEY="with # in it" # a comment\r\nC_KEY=\nDB_PASSWORD=postgres\n'
    )
    (tmp_path / ".env.example").write_text("SHOP_TOKEN=your-token-here\n")
    (tmp_path / "copy.txt").write_text(
        "sk-in-a-dotenv development localhost:80\nbare-1234 postgres\nwith # in it\nyour-token-here\n"
    )
    async with conversation(tmp_path, [call("read", path="copy.txt"), {"text": "done"}]) as talk:
        await talk.turn("go")
    (finished,) = talk.all(ToolFinished)
    assert "[secret SHOP_TOKEN in .env] development localhost:80" in finished.content
    assert "[secret A_KEY in .env] postgres" in finished.content
    assert "[secret B_KEY in .env]" in finished.content
    assert "your-token-here" in finished.content
    assert "sk-in-a-dotenv" not in "\n".join(words(request) for request in talk.requests)
