"""The repository map in a conversation: built after a turn, shown with the next message, once."""

import time
from pathlib import Path

import anyio
import pytest

from handrail.context.map.repository_map import MAP_FILE
from handrail.models.model import Request, UserTurn
from handrail.protocol.events import UserMessage
from handrail.storage.map_cache import lock_cache, read_published
from tests.engine.conversation import DEADLINE, conversation

pytestmark = pytest.mark.anyio
ANSWERS = [{"text": "one"}, {"text": "two"}, {"text": "three"}]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "prices.py").write_text("class PriceList:\n    def lookup_price(self, name): ...\n")
    for number in range(12):
        (root / f"part_{number}.py").write_text(
            "from prices import PriceList\nPriceList().lookup_price('x')\n"
        )
    return root


async def ready(folder: Path) -> None:
    """Wait until a builder has published something and is gone."""
    file, limit = folder / MAP_FILE, time.monotonic() + DEADLINE
    while not read_published(file, 1, []).best or (lock := lock_cache(file)) is None:
        assert time.monotonic() < limit, "no map was built"
        await anyio.sleep(0.02)
    lock.release()


def last_words(request: Request) -> str:
    said = [message for message in request.messages if isinstance(message, UserTurn)]
    return said[-1].text


@pytest.mark.promise("MAP-6")
async def test_map_is_built_after_a_turn_and_shown_once(shop: Path) -> None:
    async with conversation(shop, ANSWERS) as talk:
        await talk.turn("what is in here?")
        assert "Repository map" not in last_words(talk.requests[0])
        await ready(talk.app.log.folder)
        await talk.turn("and where are prices?")
        shown = last_words(talk.requests[1])
        assert "Repository map" in shown
        assert "prices.py: PriceList(lookup_price)" in shown
        assert talk.all(UserMessage)[-1].mapped[0] == "prices.py"
        await talk.turn("and what else then?")
        assert "Repository map" not in last_words(talk.requests[2])
        assert talk.requests[2].messages[: len(talk.requests[1].messages)] == talk.requests[1].messages


@pytest.mark.promise("MAP-6")
async def test_greeting_stays_small_in_a_repository_with_a_map(shop: Path) -> None:
    async with conversation(shop, ANSWERS) as talk:
        await talk.turn("hi")
        await ready(talk.app.log.folder)
        await talk.turn("hi")
        assert last_words(talk.requests[1]) == last_words(talk.requests[0]).partition("\n")[0]


async def test_no_tokens_means_no_map(shop: Path) -> None:
    async with conversation(shop, ANSWERS, settings="[context]\nmap_tokens = 0\n") as talk:
        await talk.turn("what is in here?")
        await talk.turn("what is in here now?")
        assert "Repository map" not in last_words(talk.requests[1])
        assert not (talk.app.log.folder / MAP_FILE).exists()
