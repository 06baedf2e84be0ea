"""Two machines with one log in PostgreSQL: each has its own folder, and its own home."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from msgspec.structs import replace

from handrail.app.history.move import copy_sessions
from handrail.config.places import find_places, workspace_folder
from handrail.config.settings import DatabaseSettings
from handrail.protocol.errors import StorageProblem, StorageUnreachable, UsageProblem
from handrail.protocol.events import Answered, ChangeAbandoned, ChangePrepared, TurnFinished, UserMessage
from handrail.sessions.session import Session
from handrail.storage.log_repair import open_log
from tests.engine.conversation import call, conversation, eventually
from tests.interfaces.cli.program import command
from tests.postgres import Server

pytestmark = pytest.mark.anyio


class Machine(NamedTuple):
    folder: Path
    environ: Mapping[str, str]
    database: DatabaseSettings

    def session(self, session_id: str) -> Session:
        places = find_places(self.environ)
        return Session(
            open_log(workspace_folder(places, self.folder), self.database, self.folder), session_id
        )


@pytest.fixture
def machines(tmp_path: Path, postgres: Server) -> tuple[Machine, Machine]:
    database = postgres.workspace()

    def machine(name: str) -> Machine:
        folder = tmp_path / name / "shop"
        folder.mkdir(parents=True)
        (folder / "cart.py").write_text("total = 1\n")
        environ = {
            **os.environ,
            "HANDRAIL_HOME": str(tmp_path / name / "home"),
            "HANDRAIL_DATABASE": database.url,
            "HANDRAIL_DATABASE_WORKSPACE": database.workspace,
        }
        return Machine(folder, environ, database)

    return machine("a"), machine("b")


def write(text: str) -> list[dict[str, Any]]:
    return [call("read", path="cart.py"), call("write", path="cart.py", text=text), {"text": "done"}]


@pytest.mark.promise("PG-1")
async def test_session_of_one_machine_is_followed_and_continued_on_another(
    machines: tuple[Machine, Machine],
) -> None:
    here, there = machines
    async with conversation(
        here.folder, [*write("total = 2\n"), {"text": "again"}], environ=here.environ, mode="auto"
    ) as one:
        await one.say("set it to 2")
        await one.until(TurnFinished)
        async with conversation(there.folder, [], environ=there.environ, session=one.id) as two:
            assert [each.id for each in two.app.sessions()] == [one.id]
            await two.until(TurnFinished)
            await two.say("and again")  # the holder answers: it is on the other machine
            assert (await two.until(Answered, lambda each: each.text == "again")).text == "again"
            await two.until(TurnFinished)
            assert not two.app.is_holder(one.id)
            seen = two.app.last_seq(one.id)
    answers: list[dict[str, Any]] = [*([{"text": "earlier"}] * 4), *write("total = 3\n")]
    async with conversation(
        there.folder, answers, environ=there.environ, session=one.id, mode="auto", after=seen
    ) as two:
        await two.say("set it to 3")
        message = await two.until(UserMessage)
        assert "Changed by somebody else since you saw it" in message.attached
        await two.until(TurnFinished)
    assert (here.folder / "cart.py").read_text() == "total = 2\n"
    assert (there.folder / "cart.py").read_text() == "total = 3\n"


@pytest.mark.promise("PG-5")
async def test_change_that_was_interrupted_is_finished_only_where_its_files_are(
    machines: tuple[Machine, Machine],
) -> None:
    here, there = machines
    async with conversation(here.folder, write("total = 2\n"), environ=here.environ, mode="auto") as one:
        await one.say("set it to 2")
        prepared = await one.until(ChangePrepared)
        await one.until(TurnFinished)
    session = here.session(one.id).load()
    assert session.try_hold()
    (here.folder / "cart.py").write_text("total = 1\n")
    session.append(replace(prepared, change_id="c_open"))  # and killed there
    session.release()
    session.log.close()
    with pytest.raises(StorageProblem, match=f"changed files in {here.folder} on .*Open it there once"):
        async with conversation(there.folder, [], environ=there.environ, session=one.id) as two:
            await two.until(ChangeAbandoned)
    assert (there.folder / "cart.py").read_text() == "total = 1\n"
    async with conversation(here.folder, [], environ=here.environ, session=one.id) as again:
        assert (await again.until(ChangeAbandoned)).change_id == "c_open"
        seen = again.app.last_seq(one.id)
    async with conversation(
        there.folder, [{"text": "fine"}], environ=there.environ, session=one.id, after=seen
    ) as two:
        await two.say("go on")
        await two.until(TurnFinished)


@pytest.mark.promise("PG-6")
def test_doctor_and_storage_say_which_database_is_used_and_how_quickly_it_answers(
    machines: tuple[Machine, Machine],
) -> None:
    here, _ = machines

    def said(*words: str, database: str = here.database.url) -> str:
        environ = {**here.environ, "HANDRAIL_DATABASE": database}
        done = subprocess.run(
            [*command(), *words], cwd=here.folder, env=environ, capture_output=True, text=True, check=False
        )
        return " ".join((done.stdout + done.stderr).split())

    shown = f"workspace {here.database.workspace}"
    assert shown in said("storage")
    assert "answers in" in said("storage")
    assert shown in said("doctor")
    assert not list(Path(here.environ["HANDRAIL_HOME"]).rglob("log.db"))
    for words in (["doctor"], ["storage"], ["sessions"], ["config"], ["run", "hello"]):
        text = said(*words, database="postgresql://ada:hunter2@127.0.0.1:1/x")
        assert "hunter2" not in text
        assert words == ["config"] or "cannot be reached" in text


@pytest.mark.promise("PG-8")
async def test_run_that_began_in_the_file_goes_on_in_the_database(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    alone = {**here.environ, "HANDRAIL_DATABASE": ""}
    async with conversation(here.folder, [{"text": "one"}], environ=alone) as talk:
        await talk.say("begin")
        await talk.until(TurnFinished)
        seen = talk.app.last_seq(talk.id)
    moved = await anyio.run_process(
        [*command(), "storage", "move", "--to", here.database.url], cwd=here.folder, env=alone
    )
    assert b"Copied 1 stream" in moved.stdout
    answers = [{"text": "one"}, {"text": "two"}]
    elsewhere = {**there.environ, "HANDRAIL_DATABASE": ""}
    async with conversation(
        there.folder, answers, environ=elsewhere, database=here.database.url, session=talk.id, after=seen
    ) as talk:
        await talk.say("go on")
        assert (await talk.until(Answered)).text == "two"
        await talk.until(TurnFinished)


def test_log_is_not_copied_onto_itself(machines: tuple[Machine, Machine]) -> None:
    here, _ = machines
    with pytest.raises(UsageProblem, match="--to is empty"):
        copy_sessions(here.folder, "", {**here.environ, "HANDRAIL_DATABASE": ""})


@pytest.mark.promise("PG-2")
async def test_session_goes_on_after_the_server_was_started_again(tmp_path: Path) -> None:
    server = Server()
    try:
        database = server.workspace()
        environ = {
            **os.environ,
            "HANDRAIL_DATABASE": database.url,
            "HANDRAIL_DATABASE_WORKSPACE": database.workspace,
        }
        async with conversation(tmp_path, [{"text": "one"}, {"text": "two"}], environ=environ) as talk:
            await talk.say("first")
            await talk.until(TurnFinished)
            server.stop(signal.SIGQUIT)
            with pytest.raises(StorageUnreachable):
                await talk.say("lost")
            server.start()

            def is_back() -> bool:
                with suppress(StorageUnreachable):
                    talk.app.last_seq(talk.id)
                    return True
                return False

            await eventually(is_back)
            await talk.say("second")
            assert (await talk.until(Answered)).text == "two"
            await talk.until(TurnFinished)
            said = [one.event.text for one in talk.seen if isinstance(one.event, UserMessage)]
            assert said == ["first", "second"]
    finally:
        server.remove()
