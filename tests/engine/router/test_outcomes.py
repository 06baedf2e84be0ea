"""What the record says of where messages went."""

from pathlib import Path

import pytest

from handrail.engine.router.confidence import count_outcomes, route_outcomes
from handrail.protocol.commands import SetRoute
from handrail.protocol.events import RouteSet
from tests.engine.conversation import call, conversation
from tests.engine.router.test_router import DONE, TWO, said

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def auto_route(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "on")


async def test_each_way_is_counted_with_what_was_changed_and_what_the_user_put_right(tmp_path: Path) -> None:
    wrote = call("write", path="a.txt", text="x\n")
    doubt = said(decision="agent", confidence=0.6)
    async with conversation(tmp_path, [wrote, DONE, doubt, DONE], catalogue=TWO, mode="edit") as talk:
        await talk.turn("write a.txt for me")
        await talk.turn("cart.py, the rounding")
        await talk.send(SetRoute(route="agent"))
        await talk.until(RouteSet)
        rows = count_outcomes(route_outcomes(talk.app.log))

    assert [tuple(row) for row in rows] == [
        ("model", "chat", "0.45-0.70", 1, 0, 1),
        ("rules", "agent", "", 1, 1, 0),
    ]
