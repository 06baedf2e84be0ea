"""After a session with three secrets, none of them is anywhere but encrypted."""

import json
import os
import sqlite3
import zlib
from pathlib import Path

import pytest

from handrail.app.command_checks import answer_with_secret
from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from handrail.protocol.commands import AnswerApproval, AnswerQuestion
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ApprovalAsked, QuestionAsked, RequestStarted, ToolFinished, TurnFinished
from handrail.protocol.ids import new_id
from handrail.protocol.values import to_json
from handrail.storage.archive import read_lines
from tests.conftest import NO_SERVER
from tests.engine.conversation import conversation
from tests.models.fake_server import FakeServer, Said

pytestmark = pytest.mark.anyio
MODEL_KEY, STORED_BEFORE, TYPED = "mkey-7Hq2zR91xW", "dbpass-Pz83kLmQ77", "typed-Vb55nnTTw0"
SECRETS = (MODEL_KEY, STORED_BEFORE, TYPED)
SETTINGS = (
    '{local}[models]\nmain = "mine/m"\n[connections.mine]\nbase_url = "{url}/v1"\nkey_env = ["MINE_KEY"]\n'
)
SETTINGS += "context_window = 100000\nnative_tools = true\nimages = false\n"
SHOWS = "printenv SHOP_TOKEN SHOP_PASSWORD; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"
KEEPS = 'test "$SHOP_TOKEN" = typed-"Vb55nnTTw0" && echo it is the one'


def in_plain(data: bytes) -> set[str]:
    """The secrets that stand in the bytes, also where a database keeps them compressed."""
    return {secret for secret in SECRETS if secret.encode() in data}


def stored(file: Path) -> set[str]:
    """The secrets that a file has; of a database every cell, unpacked."""
    data = file.read_bytes()
    found = in_plain(data)
    if data.startswith(b"SQLite format 3"):
        with sqlite3.connect(file) as db:
            for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
                for row in db.execute(f'select * from "{table}"'):  # noqa: S608
                    for cell in row:
                        raw = cell.encode() if isinstance(cell, str) else cell
                        if isinstance(raw, bytes):
                            found |= in_plain(raw) | in_plain(unpacked(raw))
    return found


def unpacked(data: bytes) -> bytes:
    for wbits in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            return zlib.decompressobj(wbits).decompress(data)
        except zlib.error:
            continue
    return b""


def calls(name: str, /, **arguments: object) -> Said:
    return Said(calls=((new_id("call"), name, json.dumps(arguments)),))


@pytest.mark.promise("CRED-7")
async def test_after_a_full_session_no_secret_is_anywhere_but_encrypted(tmp_path: Path, home: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    credentials = Credentials(find_places(os.environ), os.environ)
    (home / "handrail").mkdir(mode=0o700)
    credentials.set_all({"model/mine": MODEL_KEY, "SHOP_PASSWORD": STORED_BEFORE})
    answers = [
        calls("credential_prompt", name="SHOP_TOKEN", why="the shop's API wants it"),
        calls("run", command="printenv SHOP_TOKEN SHOP_PASSWORD"),
        calls("run", command=SHOWS, secrets=["SHOP_TOKEN", "SHOP_PASSWORD"]),
        calls("run", command=KEEPS, secrets=["SHOP_TOKEN"]),
        Said(text=(f"The server repeats {MODEL_KEY}.",)),
    ]
    with FakeServer(answers) as server:
        settings = SETTINGS.format(local=NO_SERVER, url=server.url)
        async with conversation(workspace, None, settings=settings, mode="auto", allow=("printenv",)) as talk:
            await talk.say("look into the shop")
            asked = await talk.until(QuestionAsked)
            assert (asked.secret, "the shop's API" in asked.question) == ("SHOP_TOKEN", True)
            with pytest.raises(UsageProblem, match="kept in the log"):
                await talk.send(AnswerQuestion(question_id=asked.question_id, answer=TYPED))
            await answer_with_secret(talk.app, talk.id, asked.question_id, TYPED)
            for names in ("SHOP_TOKEN, SHOP_PASSWORD", "SHOP_TOKEN"):
                approval = await talk.until(ApprovalAsked)  # also in mode auto
                assert f"stored as {names}" in approval.why
                await talk.send(AnswerApproval(approval_id=approval.approval_id, decision="once"))
            assert (await talk.until(TurnFinished)).reason == "answered"
            results = {each.call_id: each for each in talk.all(ToolFinished)}
            talk.app.export(talk.id, tmp_path / "exported")
            bodies = [talk.app.log.request(each.body) or b"" for each in talk.all(RequestStarted)]
            events = "\n".join(to_json(each.event) for each in talk.seen)
            deltas = "".join(delta.text for delta in talk.deltas)
        prompts = b"".join(each.body for each in server.requests)
        assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {MODEL_KEY}"}
    prompt, plain, shows, keeps = results.values()
    assert (prompt.summary, "[secret" in prompt.content) == ("stored", False)
    assert plain.summary.startswith("exit 1")  # a command that was given none has none
    assert shows.content.count("[secret SHOP_TOKEN]") == shows.content.count("[secret SHOP_PASSWORD]") == 1
    assert "it is the one" in keeps.content
    exported = "\n".join(read_lines(tmp_path / "exported"))
    told = (prompts, b"".join(bodies), events.encode(), deltas.encode(), exported.encode())
    assert [in_plain(each) for each in told] == [set()] * len(told)
    files = [path for folder in (home, tmp_path) for path in folder.rglob("*") if path.is_file()]
    assert credentials.path in files
    assert any(path.suffix == ".db" or path.read_bytes().startswith(b"SQLite") for path in files)
    assert {path.name: found for path in files if (found := stored(path))} == {}
    assert set(SECRETS) == set(credentials.values().values())
