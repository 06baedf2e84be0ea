"""The run tool and its sandbox."""

from collections.abc import Callable

import pytest

from tests.tools.calls import Bench
from tests.tools.sandbox.conftest import working

pytestmark = pytest.mark.anyio
MakeBench = Callable[..., Bench]


@pytest.mark.promise("SAND-10")
async def test_a_command_says_how_it_was_confined(bench: Bench) -> None:
    finished = await bench.call("run", command="true")
    assert finished.summary.endswith(f", {working()[0].title()}")


async def test_a_command_is_confined(bench: Bench) -> None:
    log = bench.session.log.path
    finished = await bench.call("run", command=f"cat {log}; touch {bench.root.parent}/out; touch in")
    assert "SQLite" not in finished.content
    assert not (bench.root.parent / "out").exists()
    assert (bench.root / "in").exists()


async def test_a_command_that_the_sandbox_stopped_tells_the_model_the_rules(bench: Bench) -> None:
    stopped = await bench.call("run", command="touch /usr/new")
    assert stopped.content.endswith(working()[0].told())
    assert "[sandbox" not in (await bench.call("run", command="echo Permission denied")).content
    assert "[sandbox" not in (await bench.call("run", command="false")).content


@pytest.mark.promise("SAND-5")
async def test_the_network_is_asked_for_even_where_the_command_is_allowed(make_bench: MakeBench) -> None:
    bench = make_bench("auto", allow=("true",))
    await bench.call("run", command="true")
    assert not bench.user.asked
    finished = await bench.call("run", command="true", network=True)
    assert [asked.summary for asked in bench.user.asked] == ["with network: true"]
    assert finished.summary.endswith("with network")


@pytest.mark.promise("SAND-5")
async def test_always_for_a_command_does_not_give_it_the_network(make_bench: MakeBench) -> None:
    bench = make_bench("ask")
    bench.user.says = "always"
    for network in (False, True, False, True):
        await bench.call("run", command="true", network=network)
    assert [asked.summary for asked in bench.user.asked] == ["true", "with network: true"]
