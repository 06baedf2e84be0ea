"""Commands in the background: begun, followed, read, stopped, and gone with their session."""

from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from handrail.protocol.events import BackgroundEnded, BackgroundStarted, ChangePrepared
from handrail.tools.commands.background import MAX_RUNNING
from handrail.tools.sandbox.sandbox import Protection, Sandbox
from handrail.tools.secrets import find_secrets
from tests.processes import gone, lasting, running
from tests.tools.calls import Bench
from tests.tools.sandbox.machine import working

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]
WAYS = (*working(), Protection())


@pytest.fixture(params=WAYS, ids=lambda found: found.name)
async def bench(make_bench: MakeBench, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    made = make_bench("auto", sandbox=Sandbox(found=request.param))
    with anyio.fail_after(50):
        async with made.tools.background.open_for(made.session):
            yield made


async def heard(bench: Bench, background_id: str, text: str) -> str:
    """What streams of a command, once it says this."""
    with anyio.fail_after(50):
        while text not in (said := bench.session.live.text(background_id, "background")):
            await anyio.sleep(0.01)
    return said


def ends(bench: Bench) -> list[BackgroundEnded]:
    return [event for event in bench.events() if isinstance(event, BackgroundEnded)]


@pytest.mark.promise("CMD-9")
async def test_it_outlives_its_call_and_is_followed_read_and_stopped(bench: Bench) -> None:
    child = lasting()
    begun = await bench.call(
        "run", command=f"echo ready; setsid sleep {child} & sleep {child}", background=True
    )
    assert begun.status == "ok"
    assert begun.summary.startswith("b1 running for ")
    assert await heard(bench, "b1", "ready") == "ready\n"
    assert [each.command for each in bench.session.state.background.running.values()] == [
        f"echo ready; setsid sleep {child} & sleep {child}"
    ]
    assert (await bench.call("background")).content.startswith("b1 running for ")
    assert "ready" in (await bench.call("background", id="b1")).content
    assert running(child)
    stopped = await bench.call("background", id="b1", stop=True)
    assert "stopped by the model" in stopped.summary
    assert "ready" in stopped.content
    assert await gone(child)
    assert not bench.session.state.background.running
    (end,) = ends(bench)
    assert (end.how, end.code, end.shown) == ("stopped", None, "ready")
    assert (bench.session.log.blob(end.output) or b"").startswith(b"ready\n")


async def test_its_start_is_in_the_log_before_it_runs_and_its_end_when_nothing_of_it_is_left(
    bench: Bench,
) -> None:
    child = lasting()
    await bench.call("run", command=f"setsid sleep {child} & exit 3", background=True)
    waited = await bench.call("background", id="b1", wait=20)
    assert waited.summary.startswith("b1 has ended, exit 3")
    assert not running(child)
    order = [event.type for event in bench.events() if "background" in event.type]
    assert order == ["background_started", "background_ended"]
    assert ends(bench)[0].code == 3


async def test_what_fails_at_once_is_told_with_the_start(bench: Bench) -> None:
    begun = await bench.call("run", command="echo the port is taken; exit 4", background=True)
    finished = await bench.call("background", id="b1", wait=20)
    for told in (begun, finished):
        assert "the port is taken" in told.content or "running for" in told.summary
    assert finished.status == "failed"


@pytest.mark.promise("CMD-10")
async def test_it_ends_with_the_session(make_bench: MakeBench) -> None:
    made, child = make_bench("auto"), lasting()
    with anyio.fail_after(50):
        async with made.tools.background.open_for(made.session):
            away = f"setsid bash -c \"trap '' TERM; sleep {child}\" & sleep {child}"
            await made.call("run", command=away, background=True)
            while len(running(child)) < 2:
                await anyio.sleep(0.01)
    assert not running(child)
    assert [end.how for end in ends(made)] == ["session"]
    assert not made.session.state.background.running


async def test_it_can_be_begun_only_where_somebody_follows_it(make_bench: MakeBench) -> None:
    refused = await make_bench("auto").call("run", command="sleep 60", background=True)
    assert refused.error is not None
    assert refused.error.reason == "invalid_arguments"


async def test_the_gate_decides_about_its_command_as_about_any(make_bench: MakeBench) -> None:
    made = make_bench("auto", allow=("sleep",), answerable=False)
    async with made.tools.background.open_for(made.session):
        refused = await made.call("run", command="rm -rf src", background=True)
        assert refused.error is not None
        assert refused.error.reason == "nobody_to_ask"
        assert (await made.call("run", command="sleep 600", background=True)).status == "ok"
    started = [event.command for event in made.events() if isinstance(event, BackgroundStarted)]
    assert started == ["sleep 600"]


async def test_there_are_only_so_many_at_once(make_bench: MakeBench) -> None:
    made, child = make_bench("auto"), lasting()
    async with made.tools.background.open_for(made.session):
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_RUNNING):
                tasks.start_soon(lambda: made.call("run", command=f"sleep {child}", background=True))
        refused = await made.call("run", command=f"sleep {child}", background=True)
        assert refused.error is not None
        assert "Stop one first" in refused.error.message
    assert await gone(child)


@pytest.mark.promise("TOOL-8")
async def test_it_gets_no_secrets_and_shows_none(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "hunter2hunter2")
    made = make_bench("auto", secrets=find_secrets({"DEPLOY_TOKEN": "hunter2hunter2"}))
    (made.root / "notes").write_text("a hunter2hunter2 b")
    async with made.tools.background.open_for(made.session):
        await made.call("run", command='echo "[$DEPLOY_TOKEN]"; cat notes; sleep 600', background=True)
        said = await heard(made, "b1", " b")
        read = await made.call("background", id="b1")
        stopped = await made.call("background", id="b1", stop=True)
    for text in (said, read.content, stopped.content, ends(made)[0].shown):
        assert "[]" in text
        assert "hunter2" not in text
    assert b"hunter2" not in (made.session.log.blob(ends(made)[0].output) or b"hunter2")


async def test_more_output_than_anybody_reads_ends_it(make_bench: MakeBench) -> None:
    made = make_bench("auto")
    with anyio.fail_after(60):
        async with made.tools.background.open_for(made.session):
            await made.call("run", command="yes", background=True)
            told = await made.call("background", id="b1", wait=60)
    assert "stopped at 256 MB of output" in told.summary
    assert ends(made)[0].how == "limit"
    assert len(made.session.log.blob(ends(made)[0].output) or b"") < 5_000_000


@pytest.mark.promise("CMD-11")
async def test_a_change_it_made_is_not_put_down_to_another_command_alone(make_bench: MakeBench) -> None:
    made = make_bench("auto")
    async with made.tools.background.open_for(made.session):
        background = "until [ -e go ]; do sleep 0.01; done; echo x > theirs; sleep 600"
        await made.call("run", command=background, background=True)
        await made.call("run", command="touch go; until [ -e theirs ]; do sleep 0.01; done")
    (change,) = [event for event in made.events() if isinstance(event, ChangePrepared)]
    assert "in the background ran: until [ -e go ]" in change.intent


async def test_one_that_is_not_there_is_named_with_those_that_are(bench: Bench) -> None:
    refused = await bench.call("background", id="b7")
    assert refused.error is not None
    assert "There are: none." in refused.error.message
