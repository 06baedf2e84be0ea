"""After sessions with secrets of every kind, none of them is anywhere but encrypted."""

import json
import logging
import os
import sqlite3
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

from handrail.app.command_checks import answer_with_secret
from handrail.app.extensions.sources import sign_in
from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from handrail.protocol.commands import AnswerApproval, AnswerQuestion
from handrail.protocol.errors import UsageProblem
from handrail.protocol.events import ApprovalAsked, QuestionAsked, RequestStarted, ToolFinished, TurnFinished
from handrail.protocol.ids import new_id
from handrail.protocol.values import to_json
from handrail.storage.archive import read_lines
from tests.conftest import NO_SERVER
from tests.engine.conversation import Conversation, conversation
from tests.models.fake_server import FakeServer, Said
from tests.tools.sources.oauth_server import OAuthServer, browser, serving
from tests.tools.sources.places import own

pytestmark = pytest.mark.anyio
MODEL_KEY, STORED_BEFORE, TYPED = "mkey-7Hq2zR91xW", "dbpass-Pz83kLmQ77", "typed-Vb55nnTTw0"
OF_SOURCE = "srckey-Yt40fPqL8m"
SECRETS = (MODEL_KEY, STORED_BEFORE, TYPED)
SETTINGS = (
    '{local}[models]\nmain = "mine/m"\n[connections.mine]\nbase_url = "{url}/v1"\nkey_env = ["MINE_KEY"]\n'
)
SETTINGS += "context_window = 100000\nnative_tools = true\nimages = false\n"
SHOWS = "printenv SHOP_TOKEN SHOP_PASSWORD; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"
PRIES = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | rev"
"""Read backwards: a secret that a program writes in another form is not recognised, so it must not get it."""
HOOK = "import os, sys; open(sys.argv[1], 'a').write(f'{dict(os.environ)} {sys.argv} {sys.stdin.read()}')"
KEEPS = 'test "$SHOP_TOKEN" = typed-"Vb55nnTTw0" && echo it is the one'


class Search(NamedTuple):
    """Looks for secrets in everything that is left of a session."""

    secrets: tuple[str, ...]

    def within(self, data: bytes) -> set[str]:
        return {secret for secret in self.secrets if secret.encode() in data}

    def stored(self, file: Path) -> set[str]:
        """The secrets that a file has; of a database every cell, unpacked."""
        data = file.read_bytes()
        found = self.within(data)
        if data.startswith(b"SQLite format 3"):
            with sqlite3.connect(file) as db:
                for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
                    for row in db.execute(f'select * from "{table}"'):  # noqa: S608
                        for cell in row:
                            raw = cell.encode() if isinstance(cell, str) else cell
                            if isinstance(raw, bytes):
                                found |= self.within(raw) | self.within(unpacked(raw))
        return found

    def told(self, talk: Conversation, exported: Path) -> set[str]:
        """Those in events, streamed words, kept prompts and the export of a running session."""
        talk.app.export(talk.id, exported)
        kept = [talk.app.log.request(each.body) or b"" for each in talk.all(RequestStarted)]
        events = [to_json(each.event) for each in talk.seen]
        texts = [*events, *(delta.text for delta in talk.deltas), *read_lines(exported)]
        return self.within(b"\n".join([*kept, *(text.encode() for text in texts)]))

    def left(self, *folders: Path) -> dict[str, set[str]]:
        """{file: secrets that stand in it in plain text}"""
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        assert any(path.read_bytes().startswith(b"SQLite") for path in files)
        return {path.name: found for path in files if (found := self.stored(path))}


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
    search, workspace = Search(SECRETS), tmp_path / "w"
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
            assert search.told(talk, tmp_path / "exported") == set()
        assert search.within(b"".join(each.body for each in server.requests)) == set()
        assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {MODEL_KEY}"}
    prompt, plain, shows, keeps = results.values()
    assert (prompt.summary, "[secret" in prompt.content) == ("stored", False)
    assert plain.summary.startswith("exit 1")  # a command that was given none has none
    assert shows.content.count("[secret SHOP_TOKEN]") == shows.content.count("[secret SHOP_PASSWORD]") == 1
    assert "it is the one" in keeps.content
    assert search.left(home, tmp_path) == {}
    assert set(SECRETS) == set(credentials.values().values())


@pytest.mark.promise("CRED-7")
@pytest.mark.promise("SOURCE-7")
async def test_secrets_of_sources_are_nowhere_but_with_their_servers(
    tmp_path: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    workspace, seen = tmp_path / "w", tmp_path / "hooked"
    workspace.mkdir()
    credentials = Credentials(find_places(os.environ), os.environ)
    (home / "handrail").mkdir(mode=0o700)
    credentials.set_all({"model/mine": MODEL_KEY, "source/plain/PLAIN_TOKEN": OF_SOURCE})
    unasked = {"unasked": ["*"]}
    own(os.environ, env={"SERVER_TOKEN": "${PLAIN_TOKEN}"}, tools=unasked)
    own(os.environ, "other", tools=unasked)
    answers = [
        calls("mcp", source="plain", tool="environment"),
        calls("mcp", source="other", tool="environment"),
        calls("mcp", source="guarded", tool="whoami"),
        calls("run", command=PRIES),
        Said(text=("Done.",)),
    ]
    oauth, program = OAuthServer(lifetime=31), tmp_path / "hook.py"  # each use refreshes the token
    program.write_text(HOOK)
    hooks = "".join(
        f'[[hooks]]\non = "{on}"\nrun = ["{sys.executable}", "{program}", "{seen}"]\n'
        for on in ("before_tool", "after_tool", "before_end")
    )
    caplog.set_level(logging.DEBUG)
    with FakeServer(answers) as server:
        async with serving(oauth) as url:
            own(os.environ, "guarded", url=url, tools=unasked)
            settings = SETTINGS.format(local=NO_SERVER, url=server.url) + hooks
            async with conversation(workspace, None, settings=settings, mode="auto") as talk:
                assert (await sign_in(talk.app, "guarded", browser)).ok
                await talk.say("use the sources")
                approval = await talk.until(ApprovalAsked)  # of what is outside the workspace
                await talk.send(AnswerApproval(approval_id=approval.approval_id, decision="once"))
                end = await talk.until(TurnFinished)
                assert end.reason == "answered", end.detail
                results = [each.content for each in talk.all(ToolFinished)]
                search = Search((MODEL_KEY, OF_SOURCE, *oauth.issued))
                assert search.told(talk, tmp_path / "exported") == set()
        assert search.within(b"".join(each.body for each in server.requests)) == set()
    mine, others, signed_in, pried = results
    assert "[secret source/plain/PLAIN_TOKEN]" in mine or "[secret PLAIN_TOKEN]" in mine
    assert "SERVER_TOKEN" not in others
    assert "somebody with [secret access_token]" in signed_in
    assert "PATH" in pried[::-1]
    assert Search(tuple(secret[::-1] for secret in search.secrets)).within(pried.encode()) == set()
    assert "before_tool" in seen.read_text()
    assert search.within(caplog.text.encode()) == set()
    assert search.left(home, tmp_path) == {}
