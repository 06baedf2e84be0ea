import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import MAX_FILE_BYTES, TOO_LARGE, Workspace, list_folder


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def problem_of(workspace: Workspace, name: str) -> PathProblem:
    with pytest.raises(PathProblem) as caught:
        workspace.read(name)
    return caught.value


@pytest.mark.parametrize(
    ("data", "text", "bom"),
    [
        (b"a\nb\n", "a\nb\n", False),
        (b"a\r\nb\r\n", "a\r\nb\r\n", False),
        (b"a\r\nb\n", "a\r\nb\n", False),
        (b"a\rb\r\n", "a\rb\r\n", False),
        (b"\xef\xbb\xbfa", "a", True),
        (b"", "", False),
    ],
)
def test_text_keeps_what_an_edit_must_not_lose(
    workspace: Workspace, data: bytes, text: str, bom: bool
) -> None:
    (workspace.root / "f").write_bytes(data)
    file = workspace.read("f")
    assert (file.data, file.text, file.bom) == (data, text, bom)
    assert file.sha256 == hashlib.sha256(data).hexdigest() == workspace.sha256("f")


def test_a_missing_file_names_the_nearest(workspace: Workspace) -> None:
    (workspace.root / "src").mkdir()
    (workspace.root / "src" / "basket.py").write_text("x")
    beside, elsewhere = problem_of(workspace, "src/baskets.py"), problem_of(workspace, "lib/basket.py")
    assert beside.reason == elsewhere.reason == "file_missing"
    assert "src/basket.py" in str(beside)
    assert "src/basket.py" in str(elsewhere)


def test_a_folder_is_not_a_file(workspace: Workspace) -> None:
    (workspace.root / "src").mkdir()
    assert "folder" in str(problem_of(workspace, "src"))


@pytest.mark.parametrize(("data", "word"), [(b"a\0b", "NUL"), (b"caf\xe9", "UTF-8")])
def test_binary_files_are_refused_saying_why(workspace: Workspace, data: bytes, word: str) -> None:
    (workspace.root / "f").write_bytes(data)
    problem = problem_of(workspace, "f")
    assert problem.reason == "not_text"
    assert word in str(problem)


@pytest.mark.promise("WORK-2")
def test_pipes_sockets_and_devices_are_never_opened(workspace: Workspace, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("pipe", "socket", "/dev/zero"):
            assert "never opened" in str(problem_of(workspace, name))


READ_AFTER_A_SWAP = """
import os, sys
from pathlib import Path
from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace
root, kind = Path(sys.argv[1]), sys.argv[2]
real, file = os.stat, root / "file"

def stat(path, **options):
    found = real(path, **options)
    if path == "file":
        os.unlink(file)
        os.mkfifo(file) if kind == "pipe" else os.symlink(root / "secret", file)
    return found

place = Workspace(root).resolve("file")
os.stat = stat
try:
    print(Workspace(root).read(place).text)
except PathProblem as problem:
    print(problem.reason)
"""


@pytest.mark.promise("WORK-2")
@pytest.mark.parametrize(("kind", "reason"), [("pipe", "not_text"), ("link", "protected_path")])
def test_what_takes_the_place_of_a_file_before_it_is_opened_is_neither_waited_for_nor_followed(
    workspace: Workspace, kind: str, reason: str
) -> None:
    """In a process of its own, which has a deadline: opening a pipe waits until somebody writes to it."""
    (workspace.root / "file").write_text("harmless")
    (workspace.root / "secret").write_text("secret")
    done = subprocess.run(
        [sys.executable, "-c", READ_AFTER_A_SWAP, str(workspace.root), kind],
        env=os.environ | {"PYTHONPATH": "src"},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    assert done.stdout.strip() == reason


def test_a_large_file_is_refused_whole_and_read_by_lines(workspace: Workspace) -> None:
    (workspace.root / "big.txt").write_text("".join(f"line {n}\n" for n in range(1, 200_001)))
    problem = problem_of(workspace, "big.txt")
    assert problem.reason == "too_large"
    assert "start" in str(problem)
    lines = workspace.lines("big.txt", 150_000, 150_001)
    assert lines.lines == ("line 150000", "line 150001")
    assert lines.total == 200_000
    assert lines.sha256 == hashlib.sha256((workspace.root / "big.txt").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("data", "asked", "lines", "total"),
    [
        (b"", (1, 9), (), 0),
        (b"a", (1, 9), ("a",), 1),
        (b"a\n", (1, 9), ("a",), 1),
        (b"a\r\nb\r\n", (1, 9), ("a", "b"), 2),
        (b"a\n\n", (1, 9), ("a", ""), 2),
        (b"\xef\xbb\xbfa\nb", (1, 1), ("a",), 2),
        (b"a\nb", (3, 9), (), 2),
    ],
)
def test_lines_are_counted_as_an_editor_counts_them(
    workspace: Workspace, data: bytes, asked: tuple[int, int], lines: tuple[str, ...], total: int
) -> None:
    (workspace.root / "f").write_bytes(data)
    found = workspace.lines("f", *asked)
    assert (found.lines, found.total) == (lines, total)


def test_a_character_across_two_chunks_is_read_whole(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("é" * 300_000 + "\nend")
    assert workspace.lines("f", 2, 2).lines == ("end",)


READ_FAR_LINE = """
import resource, sys
from pathlib import Path
from handrail.workspace.files import Workspace
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lines = Workspace(Path(sys.argv[1])).lines("huge", 2, 3)
assert lines.lines == ("end",) and lines.clipped is False, lines
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.promise("WORK-3")
def test_a_line_of_a_100_mb_file_costs_little_memory(workspace: Workspace) -> None:
    with (workspace.root / "huge").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\nend\n")
    done = subprocess.run(
        [sys.executable, "-c", READ_FAR_LINE, str(workspace.root)],
        env=os.environ | {"PYTHONPATH": "src"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 40_000_000


def test_one_byte_over_the_limit_is_too_large(workspace: Workspace) -> None:
    (workspace.root / "f").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    assert problem_of(workspace, "f").reason == "too_large"


@pytest.mark.promise("TOOL-15")
def test_no_file_larger_than_can_be_changed_is_read_for_its_hash(workspace: Workspace) -> None:
    """A file without content to its size of some terabytes, which no test could wait for."""
    with (workspace.root / "f").open("wb") as file:
        file.truncate(MAX_FILE_BYTES)
        assert workspace.sha256("f") == hashlib.sha256(bytes(MAX_FILE_BYTES)).hexdigest()
        file.truncate(1 << 42)
    assert workspace.sha256("f") == TOO_LARGE


def test_a_path_below_a_file_does_not_exist(workspace: Workspace) -> None:
    (workspace.root / "file").write_text("x")
    assert problem_of(workspace, "file/below").reason == "file_missing"


def test_a_folder_is_listed_with_sizes_and_link_targets(workspace: Workspace) -> None:
    (workspace.root / "src").mkdir()
    (workspace.root / "src" / "a.py").write_text("12345")
    (workspace.root / "link").symlink_to("/etc")
    assert list_folder(workspace, ".") == "link -> /etc\nsrc/"
    assert list_folder(workspace, ".", depth=2) == "link -> /etc\nsrc/\nsrc/a.py  5 bytes"


def test_a_long_listing_says_that_it_was_cut(workspace: Workspace) -> None:
    for number in range(30):
        (workspace.root / f"f{number:02}").touch()
    lines = list_folder(workspace, ".", most=10).split("\n")
    assert len(lines) == 11
    assert "cut after 10" in lines[-1]


def test_listing_what_is_no_folder_is_refused(workspace: Workspace) -> None:
    (workspace.root / "f").touch()
    for name in ("f", "missing"):
        with pytest.raises(PathProblem):
            list_folder(workspace, name)


def test_a_name_that_is_not_utf8_is_listed_in_printable_form(workspace: Workspace) -> None:
    with open(os.fsencode(workspace.root) + b"/caf\xe9", "wb"):
        pass
    assert list_folder(workspace, ".") == "caf\ufffd  0 bytes"
