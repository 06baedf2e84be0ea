"""Building the map: what is read and parsed again, who comes first, and what survives whom."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from handrail.context.map.builder import BuildResult, build_map
from handrail.storage.map_cache import MapCache, lock_cache, read_published

BUILDER = [sys.executable, "-m", "handrail.context.map.builder"]
DEADLINE = 60


@contextmanager
def opened(file: Path) -> Iterator[MapCache]:
    with closing(MapCache(file)) as cache:
        yield cache


def built(root: Path, file: Path) -> BuildResult:
    with opened(file) as cache:
        return build_map(root, cache)


def best(file: Path) -> list[str]:
    return [row.path for row in read_published(file, 10_000, []).best]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository in which `prices.py` is used by all, and `alone.py` by nobody."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "prices.py").write_text("class PriceList:\n    def lookup_price(self, name): ...\n")
    (root / "alone.py").write_text("def never_used(): ...\ndef used_by_nobody(): ...\n")
    for number in range(10):
        (root / f"part_{number}.py").write_text(
            f"from prices import PriceList\ndef part_{number}():\n    return PriceList().lookup_price('x')\n"
        )
    return root


@pytest.mark.promise("MAP-1")
def test_only_a_changed_file_is_parsed_again(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.db"
    assert built(shop, file).parsed == 12
    (shop / "alone.py").write_text("def now_something_else(): ...\n")
    (shop / "part_3.py").unlink()
    again = built(shop, file)
    assert (again.files, again.parsed, again.complete) == (11, 1, True)
    assert built(shop, file).parsed == 0
    rows = {row.path: row for row in read_published(file, 100, []).best}
    assert rows["alone.py"].outline == "now_something_else"
    assert "part_3.py" not in rows


@pytest.mark.promise("MAP-1")
def test_unchanged_files_are_not_even_read(tmp_path: Path) -> None:
    installed, file = Path(os.__file__).parent / "json", tmp_path / "map.db"
    first = built(installed, file)
    assert first.read == first.files > 3
    assert built(installed, file).read == 0


def test_content_that_was_seen_before_is_not_parsed_again(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.db"
    built(shop, file)
    (shop / "moved").mkdir()
    (shop / "prices.py").rename(shop / "moved/prices.py")
    assert built(shop, file).parsed == 0
    assert best(file)[0] == "moved/prices.py"


@pytest.mark.promise("MAP-2")
def test_files_that_others_refer_to_come_first(shop: Path, tmp_path: Path) -> None:
    built(shop, tmp_path / "map.db")
    published = read_published(tmp_path / "map.db", 100, ["part_1.py"])
    assert published.best[0].path == "prices.py"
    assert published.best[0].outline == "PriceList(lookup_price)"
    assert [row.path for row, _ in published.near] == ["prices.py"]


@pytest.mark.promise("MAP-3")
def test_ignored_and_secret_files_are_not_in_the_map(shop: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", shop], check=True)
    (shop / ".gitignore").write_text("generated/\n")
    hidden = ["generated/out.py", ".env.py", ".ssh/keys.py", ".handrail/x.py", "node_modules/m/i.js"]
    for path in [*hidden, "visible.py"]:
        (shop / path).parent.mkdir(exist_ok=True, parents=True)
        (shop / path).write_text("def something(): ...\n")
    (shop / "link.py").symlink_to(tmp_path / "elsewhere.py")
    (tmp_path / "elsewhere.py").write_text("def outside(): ...\n")
    (shop / os.fsdecode(b"odd\xff.py")).write_text("def odd(): ...\n")
    (shop / "two\nlines.py").write_text("def two_lines(): ...\n")
    built(shop, tmp_path / "map.db")
    assert "visible.py" in best(tmp_path / "map.db")
    assert len(best(tmp_path / "map.db")) == 13


@pytest.mark.parametrize("harm", ["garbage", "cut", "other version", "empty"])
def test_damaged_cache_is_made_anew(shop: Path, tmp_path: Path, harm: str) -> None:
    file = tmp_path / "map.db"
    built(shop, file)
    whole = file.read_bytes()
    match harm:
        case "garbage":
            file.write_bytes(b"no database at all" * 1_000)
        case "cut":
            file.write_bytes(whole[: len(whole) // 2])
        case "other version":
            file.write_bytes(whole[:60] + (99).to_bytes(4) + whole[64:])
        case "empty":
            file.write_bytes(b"")
    if harm != "cut":
        assert best(file) == []
    assert built(shop, file).parsed == 12
    assert len(best(file)) == 12


def test_damage_under_a_reader_gives_no_map_and_no_error(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.db"
    built(shop, file)
    whole = bytearray(file.read_bytes())
    for start in range(0, len(whole), 512):
        broken = bytearray(whole)
        broken[start : start + 512] = b"\xff" * len(broken[start : start + 512])
        file.write_bytes(broken)
        read_published(file, 100, ["part_1.py"])


@pytest.mark.promise("MAP-4")
def test_two_builders_at_once_are_one(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.db"
    builders = [subprocess.Popen([*BUILDER, shop, file]) for _ in range(4)]
    assert [builder.wait(DEADLINE) for builder in builders] == [0, 0, 0, 0]
    assert len(best(file)) == 12
    lock = lock_cache(file)
    assert lock is not None
    try:
        (shop / "new.py").write_text("def new_one(): ...\n")
        assert subprocess.run([*BUILDER, shop, file], timeout=DEADLINE, check=True).returncode == 0
        assert "new.py" not in best(file)
    finally:
        lock.release()
    subprocess.run([*BUILDER, shop, file], timeout=DEADLINE, check=True)
    assert "new.py" in best(file)


@pytest.mark.promise("MAP-4")
def test_killed_builder_leaves_a_cache_that_the_next_one_completes(tmp_path: Path) -> None:
    root, file = tmp_path / "root", tmp_path / "map.db"
    root.mkdir()
    for number in range(1_500):
        (root / f"m{number}.py").write_text(f"def function_{number}(): ...\n" * 20)
    builder = subprocess.Popen([*BUILDER, root, file], start_new_session=True)
    limit = time.monotonic() + DEADLINE
    while not best(file) and time.monotonic() < limit:
        with suppress(subprocess.TimeoutExpired):
            builder.wait(0.01)
    os.killpg(builder.pid, signal.SIGKILL)
    builder.wait(DEADLINE)
    assert 0 < len(best(file)) <= 1_500
    with opened(file) as cache:
        left = build_map(root, cache)
    assert left.parsed < 1_500
    assert len(best(file)) == 1_500


def test_file_that_kills_its_reader_twice_is_left_out(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.db"
    # Brackets that never close take the grammar a time that grows with their square.
    (shop / "slow.js").write_text(("[" * 200 + "\n") * 1_200)
    ends = [
        subprocess.run([*BUILDER, shop, file], timeout=DEADLINE, check=False).returncode for _ in range(3)
    ]
    assert ends == [-signal.SIGPROF, -signal.SIGPROF, 0]
    assert len(best(file)) == 12
    assert read_published(file, 1, []).counts == {"files": 13, "read": 13}
    assert built(shop, file).parsed == 0


def test_time_that_runs_out_leaves_a_map_that_says_so(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "map.db"
    with opened(file) as cache:
        assert not build_map(shop, cache, seconds=0).complete
        assert read_published(file, 1, []).counts == {"files": 12, "read": 0}
        assert build_map(shop, cache).complete


def test_folder_that_is_gone_ends_the_builder_quietly(tmp_path: Path) -> None:
    done = subprocess.run(
        [*BUILDER, tmp_path / "gone", tmp_path / "map.db"], timeout=DEADLINE, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
