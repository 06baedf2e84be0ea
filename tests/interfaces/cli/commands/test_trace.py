"""`handrail trace`: checked, asked and counted from the shell."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail.changes.trace.trace_file import PATH
from tests.changes.trace.traces import bind, lines_in
from tests.interfaces.cli.program import run, script

PROPOSAL = {
    "changes": [
        {"form": "create", "path": "cart.py", "text": "def total(items):\n    return sum(items)\n"},
        {"form": "create", "path": "note.md", "text": "one\ntwo\n"},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bind(tmp_path)
    return tmp_path


def edit(folder: Path, proposal: Mapping[str, object]) -> None:
    (folder / "p.json").write_text(json.dumps(proposal))
    done = run("edit", "--proposal", "p.json", "--intent", "INT-1", cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.promise("TRACE-2")
def test_a_trace_is_verified_and_what_was_done_to_it_is_named(folder: Path) -> None:
    edit(folder, PROPOSAL)
    right = run("trace", "verify", cwd=folder)
    assert (right.returncode, right.stdout) == (0, "2 lines, unchanged since written.\n")
    trace = folder / PATH
    whole = trace.read_bytes()
    trace.write_bytes(whole.replace(b'"file":"cart.py"', b'"file":"none.py"'))
    edited = run("trace", "verify", cwd=folder)
    assert edited.returncode == 1
    assert edited.stdout.startswith("line 1: edited: it was number 1 of w_")
    trace.write_bytes(whole.splitlines(keepends=True)[0])
    cut = run("trace", "verify", "--json", cwd=folder)
    assert cut.returncode == 1
    assert [(each["line"], each["kind"]) for each in json.loads(cut.stdout)["problems"]] == [(1, "cut off")]
    assert run("trace", "verify", "--restore", cwd=folder).returncode == 0
    assert trace.read_bytes() == whole


@pytest.mark.promise("TRACE-4")
def test_blame_tells_intent_and_session_of_lines_and_whose_nobody_knows(folder: Path) -> None:
    edit(folder, PROPOSAL)
    cart = folder / "cart.py"
    cart.write_text("import os\n" + cart.read_text())
    done = run("trace", "blame", "cart.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    first, second, _ = done.stdout.splitlines()
    assert first.split()[:4] == ["1", "-", "-", "-"]
    session = lines_in(folder)[0]["related"]["session"]
    assert second.split()[:4] == ["2", "INT-1", session, "(user)"]
    assert second.endswith("def total(items):")
    one = run("trace", "blame", "cart.py:3", "--json", cwd=folder)
    assert json.loads(one.stdout)["author"]["change_id"] == lines_in(folder)[0]["related"]["change"]
    beyond = run("trace", "blame", "cart.py:9", cwd=folder)
    assert beyond.returncode == 2
    assert "there is no line 9" in beyond.stderr
    assert "cart.py has 3 lines: there is no line 0." in run("trace", "blame", "cart.py:0", cwd=folder).stderr
    cart.rename(folder / "cart:7")
    assert len(run("trace", "blame", "cart:7", cwd=folder).stdout.splitlines()) == 3


@pytest.mark.promise("TRACE-4")
def test_what_a_model_wrote_is_of_its_turn_and_its_request(folder: Path) -> None:
    model = script(
        folder,
        {"calls": [{"id": "1", "name": "select_active_intent", "arguments": {"intent_id": "INT-1"}}]},
        {"calls": [{"id": "2", "name": "write", "arguments": {"path": "a.py", "text": "total = 1 + 2\n"}}]},
        {"text": "Done."},
    )
    done = run("run", "--mode", "edit", "--model", model, "write it", cwd=folder)
    assert done.returncode == 0, done.stderr
    (said,) = lines_in(folder)
    assert said["request_id"].startswith("r_")
    told = run("trace", "blame", "a.py", cwd=folder).stdout.split()
    assert told[1:5] == ["INT-1", said["related"]["session"], "turn", "1"]
    assert said["model"] == model
    assert said["related"]["call"] == "2"


def test_the_report_is_a_table_or_json(folder: Path) -> None:
    nothing = run("trace", "report", cwd=folder)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    edit(folder, PROPOSAL)
    rows = run("trace", "report", cwd=folder).stdout.splitlines()
    assert rows[0].split() == ["intent", "changes", "files", "lines", "rework", "undone"]
    assert rows[1].split()[1:] == ["1", "2", "4", "0", "0"]
    found = json.loads(run("trace", "report", "--json", cwd=folder).stdout)
    assert found["total"] == {"changes": 1, "files": 2, "lines": 4, "rework": 0, "taken_back": 0}
    assert list(found["classes"]) == ["INTENT_EVOLUTION"]


# Export


@pytest.mark.promise("TRACE-60")
@pytest.mark.parametrize("wanted", ["agent-trace", "flat"])
def test_a_clone_without_the_log_blames_by_an_export(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, wanted: str
) -> None:
    edit(folder, PROPOSAL)
    (folder / "note.md").write_text("zero\none\ntwo\n")
    before = run("trace", "blame", "--json", "note.md", cwd=folder).stdout
    elsewhere = tmp_path_factory.mktemp("clone")
    export = elsewhere / "export.jsonl"
    done = run("trace", "export", "--format", wanted, "-o", str(export), cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    piped = run("trace", "export", "--format", wanted, cwd=folder)
    assert piped.stdout == export.read_text()
    (elsewhere / "note.md").write_bytes((folder / "note.md").read_bytes())
    own = run("trace", "blame", "--json", "note.md", cwd=elsewhere).stdout
    after = run("trace", "blame", "--json", "note.md", "--from", "export.jsonl", cwd=elsewhere)
    assert after.stdout == before != own
    one = run("trace", "blame", "note.md:2", "--from", "export.jsonl", cwd=elsewhere)
    assert "INT-1" in one.stdout


@pytest.mark.promise("TRACE-62")
def test_an_export_never_replaces_a_file_and_leaves_no_part_of_one(folder: Path) -> None:
    edit(folder, PROPOSAL)
    for target in ("cart.py", "none/export.jsonl", "/dev/stdout"):
        done = run("trace", "export", "-o", target, cwd=folder)
        assert (done.returncode, done.stdout) == (2, ""), target
        assert "Choose another name" in done.stderr or "cannot be written" in done.stderr
    assert (folder / "cart.py").read_text().startswith("def total")
    trace = folder / PATH
    trace.unlink()
    trace.symlink_to("/dev/zero")
    done = run("trace", "export", "-o", "export.jsonl", cwd=folder)
    assert done.returncode != 0
    assert not [each.name for each in folder.iterdir() if "export" in each.name]


def test_without_changes_an_export_is_empty_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    done = run("trace", "export", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    (tmp_path / "a.txt").write_text("x\n")
    for source in ("a.txt", "missing", "."):
        done = run("trace", "blame", "a.txt", "--from", source, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
