"""The part of the map that goes with a message."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from handrail.context.map.repository_map import MAP_FILE, MapFragment, RepositoryMap, map_fragment
from handrail.context.token_budget import text_tokens
from handrail.sessions.files_seen import FilesSeen, SeenFile
from handrail.sessions.session_state import CompactionCut, SessionState
from handrail.storage.map_cache import MapCache, Published, Ranked
from handrail.workspace.files import Workspace

LARGE = 200_000
ASKED = "please look at the prices"


def ranked(number: int, near: dict[str, float] | None = None) -> Ranked:
    names = ", ".join(f"Name{number}_{each}" for each in range(6))
    return Ranked(f"src/f{number:03}.py", 300.0 - number, names, json.dumps(near or {}))


def published(files: int, read: int | None = None) -> Published:
    rows = tuple(ranked(number) for number in range(min(files, 200)))
    return Published(rows, (), {"files": files, "read": files if read is None else read})


def part(found: Published, tokens: int = 1_000) -> MapFragment:
    return map_fragment(found, played=(), shown=(), tokens=tokens, exists=lambda _: True)


@pytest.fixture
def shop(tmp_path: Path) -> RepositoryMap:
    """A workspace of 300 files with a map in which f250 is near f007."""
    root, kept = tmp_path / "root", tmp_path / "kept"
    (root / "src").mkdir(parents=True)
    kept.mkdir()
    rows = [ranked(number, {"src/f250.py": 3.0} if number == 7 else None) for number in range(300)]
    for row in rows:
        (root / row.path).touch()
    with closing(MapCache(kept / MAP_FILE)) as cache:
        cache.publish(rows, {"files": 300, "read": 300})
    return RepositoryMap(Workspace(root), kept, tokens=1_000)


def seen(*paths: str) -> FilesSeen:
    return FilesSeen(files={path: SeenFile(sha256="0", turn=1, whole=True) for path in paths})


@pytest.mark.promise("MAP-5")
@pytest.mark.parametrize("tokens", [60, 300, 1_000, 5_000])
@pytest.mark.parametrize("files", [12, 20_000])
def test_part_fits_its_budget_and_says_what_was_cut(files: int, tokens: int) -> None:
    found = part(published(files), tokens=tokens)
    assert found.text
    assert text_tokens(found.text) <= tokens
    if left := files - len(found.paths):
        assert f"... {left:,} more files" in found.text
    else:
        assert "more files" not in found.text


@pytest.mark.promise("MAP-5")
def test_map_that_is_not_complete_says_so_and_is_shown_again() -> None:
    found = part(published(files=20_000, read=812))
    assert "812 of 20,000 source files have been read" in found.text
    assert found.paths == ()


def test_small_repository_has_no_map() -> None:
    assert part(published(files=9)) == MapFragment()
    assert part(Published()) == MapFragment()


@pytest.mark.promise("MAP-2")
def test_files_near_those_in_play_come_first(shop: RepositoryMap) -> None:
    alone = shop.part(SessionState(), ASKED, LARGE)
    assert "f250.py" not in alone.text
    for state, message in (
        (SessionState(files=seen("src/f007.py")), ASKED),
        (SessionState(), "@src/f007.py"),
    ):
        found = shop.part(state, message, LARGE)
        assert found.paths[0] == "src/f250.py"
        assert "src/f007.py" not in found.paths  # what the model has seen needs no outline


def test_what_was_shown_is_not_shown_again_until_a_compaction_takes_it_away(shop: RepositoryMap) -> None:
    first = shop.part(SessionState(), ASKED, LARGE)
    state = SessionState(mapped=dict.fromkeys(first.paths, 5))
    assert shop.part(state, ASKED, LARGE) == MapFragment()
    state.files = seen("src/f007.py")
    assert shop.part(state, ASKED, LARGE).paths == ("src/f250.py",)
    state.cut = CompactionCut(upto=5)
    assert len(shop.part(state, ASKED, LARGE).paths) >= len(first.paths) - 1


@pytest.mark.promise("MAP-6")
@pytest.mark.parametrize("message", ["hi", "", "thank you"])
def test_greeting_comes_without_a_map(shop: RepositoryMap, message: str) -> None:
    assert shop.part(SessionState(), message, LARGE) == MapFragment()


def test_no_window_gets_no_map_and_a_small_window_a_small_one(shop: RepositoryMap) -> None:
    assert shop.part(SessionState(), ASKED, 0) == MapFragment()
    small = shop.part(SessionState(), ASKED, 4_096)
    assert 0 < text_tokens(small.text) <= 256


def test_file_that_went_away_since_is_not_named(shop: RepositoryMap, tmp_path: Path) -> None:
    (tmp_path / "root/src/f000.py").unlink()
    assert shop.part(SessionState(), ASKED, LARGE).paths[0] == "src/f001.py"


def test_mention_that_is_no_path_does_not_hurt(shop: RepositoryMap) -> None:
    assert shop.part(SessionState(), "@" + "x" * 5_000, LARGE).text
