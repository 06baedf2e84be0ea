"""Damage: whatever byte is wrong, what is valid lives on, what is lost is said, and the file is kept."""

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from handrail.protocol.errors import StorageDamaged
from handrail.storage.event_log import Log, NewRow, Row
from handrail.storage.log_repair import open_log, repair, verify

STREAMS = ("session:one", "session:two", "workspace")
PAGE = 4096


def write_events(log: Log, count: int) -> None:
    for number in range(count):
        for stream in STREAMS:
            data = f'{{"type":"note","number":{number},"text":"{"text " * (number % 40)}"}}'
            log.append(stream, [NewRow("note", 1, data)], blobs=[f"content {number}".encode() * 9])


@pytest.fixture
def original(in_memory: Path) -> Path:
    """A closed, checkpointed log."""
    log = open_log(in_memory / "original")
    write_events(log, 30)
    log.close()
    return in_memory / "original"


def events(log: Log) -> dict[str, list[Row]]:
    return {stream: log.read(stream) for stream in STREAMS if log.head(stream)}


def open_after_damage(folder: Path) -> Log | None:
    """What a user gets who starts Handrail until it works or refuses: the log, or None when refused."""
    for _ in range(2):
        try:
            log = open_log(folder)
        except StorageDamaged as refused:
            check_refusal(folder, refused)
            return None
        with suppress(StorageDamaged):
            if not verify(log):
                return log
        log.close()
    raise AssertionError("a repaired log is damaged still")


def check_refusal(folder: Path, refused: StorageDamaged) -> None:
    assert "a copy is in" in str(refused)
    assert list(folder.glob("damaged-*/log.db"))


def check_flip(original: Path, folder: Path, name: str, offset: int, expected: dict[str, list[Row]]) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    damaged = bytearray((folder / name).read_bytes())
    damaged[offset] ^= 0xFF
    (folder / name).write_bytes(damaged)
    log = open_after_damage(folder)
    if log is None:
        return "refused"
    try:
        missing = False
        for stream, rows in expected.items():
            found = log.read(stream) if log.head(stream) else []
            assert found == rows[: len(found)], f"{stream} is not a prefix after byte {offset} was flipped"
            missing = missing or len(found) < len(rows)
        if missing:
            told = " ".join(log.notices)
            assert "lost" in told or "not known" in told
            assert list(folder.glob("damaged-*"))
        return "shorter" if missing else "whole"
    finally:
        log.close()


@pytest.mark.promise("STORE-1")
def test_every_flipped_byte_of_the_last_page_is_survived(original: Path, in_memory: Path) -> None:
    log = open_log(original)
    expected = events(log)
    log.close()
    size = (original / "log.db").stat().st_size
    outcomes = {
        check_flip(original, in_memory / "copy", "log.db", offset, expected)
        for offset in range(size - PAGE, size)
    }
    assert "whole" in outcomes


@pytest.mark.promise("STORE-1")
def test_flipped_bytes_all_over_the_file_are_survived(original: Path, in_memory: Path) -> None:
    log = open_log(original)
    expected = events(log)
    log.close()
    size = (original / "log.db").stat().st_size
    outcomes = {
        check_flip(original, in_memory / "copy", "log.db", offset, expected) for offset in range(0, size, 101)
    }
    assert outcomes == {"whole", "shorter", "refused"}


@pytest.mark.promise("STORE-1")
def test_a_damaged_write_ahead_log_is_noticed(in_memory: Path) -> None:
    log = open_log(in_memory / "live")
    write_events(log, 10)
    expected = events(log)
    copy = in_memory / "original"
    shutil.copytree(in_memory / "live", copy)  # as a killed process leaves it: nothing checkpointed
    log.close()
    size = (copy / "log.db-wal").stat().st_size
    outcomes = [
        check_flip(copy, in_memory / "copy", "log.db-wal", offset, expected)
        for offset in range(size - PAGE, size, 7)
    ]
    assert "shorter" in outcomes


@pytest.mark.promise("STORE-2")
def test_an_interrupted_repair_goes_on_from_its_first_copy(tmp_path: Path, original: Path) -> None:
    folder = tmp_path / "copy"
    log = open_log(original)
    log.append("session:one", [NewRow("note", 1, "{}")])  # so far only in the write-ahead log
    shutil.copytree(original, folder)
    expected = events(log)
    log.close()
    (folder / "log.damaged").touch()
    first = repair(folder)
    kept = next(folder.glob("damaged-*"))
    # As if the machine had stopped after the old write-ahead log was removed, before the new file was there.
    shutil.copy(kept / "log.db", folder / "log.db")
    (folder / "log.db-wal").unlink(missing_ok=True)
    digest = hashlib.sha256((kept / "log.db").read_bytes()).hexdigest()
    (folder / "log.damaged").write_text(f"{kept.name} {digest}")
    repaired = open_log(folder)
    assert repaired.notices == [first]
    assert events(repaired) == expected
    assert list(folder.glob("damaged-*")) == [kept]
    repaired.close()


@pytest.mark.promise("STORE-2")
def test_advice_to_move_the_file_away_or_restore_a_backup_works(tmp_path: Path, original: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "log.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StorageDamaged, match="Move log"):
        open_log(folder)
    shutil.copy(original / "log.db", folder / "log.db")
    restored = open_log(folder)
    assert restored.notices == []
    assert len(restored.read("session:one")) == 30
    restored.close()
    (folder / "log.db").write_bytes(b"no database" * 1000)
    with pytest.raises(StorageDamaged, match="Move log"):
        open_log(folder)
    (folder / "log.db").unlink()
    fresh = open_log(folder)
    assert fresh.heads("") == []
    fresh.close()


def test_a_file_of_another_program_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"this is not a database at all" * 400)
    with pytest.raises(StorageDamaged, match="nothing in it can be read"):
        open_log(tmp_path)
    assert (tmp_path / "log.db").read_bytes().startswith(b"this is not")
    with pytest.raises(StorageDamaged, match="nothing in it can be read"):
        open_log(tmp_path)
    assert len(list(tmp_path.glob("damaged-*"))) == 1


def killed_in(original: Path, folder: Path) -> Path:
    """The log of a process that was killed while it wrote the last page of a commit, behind its header."""
    shutil.copytree(original, folder)
    wal = folder / "log.db-wal"
    log = open_log(folder)
    before = wal.read_bytes()
    log.append("workspace", [NewRow("note", 1, "{}")])
    after = wal.read_bytes()
    shutil.copytree(folder, cut := folder.with_name("cut"))
    log.close()
    frames = range(32, len(after), 24 + PAGE)
    salts = after[16:24]
    begun = max(at for at in frames if after[at + 8 : at + 16] == salts) + 24
    (cut / "log.db-wal").write_bytes(after[:begun] + before[begun:])
    (cut / "log.db-shm").unlink()
    return cut


def test_a_commit_that_a_kill_cut_off_is_no_damage(in_memory: Path) -> None:
    log = open_log(in_memory / "log")
    write_events(log, 5)
    shutil.copytree(in_memory / "log", left := in_memory / "left")  # as a killed process leaves it
    log.close()
    (left / "log.db-shm").unlink()

    again = open_log(killed_in(left, in_memory / "again"))
    assert again.notices == []
    assert [len(rows) for rows in events(again).values()] == [5, 5, 5]
    again.close()
