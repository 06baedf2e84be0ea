"""`handrail kb`: adding, searching, showing, checking and removing from the shell."""

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import run
from tests.knowledge.test_base import GUIDE, STANDARD


def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "guide.md").write_text(GUIDE)
    (work / "standard.md").write_text(STANDARD)
    (work / "broken.pdf").write_bytes(b"%PDF-1.4 no")
    return work


@pytest.mark.promise("KB-11")
def test_documents_are_added_found_shown_checked_and_removed(tmp_path: Path) -> None:
    work = folder(tmp_path)
    assert "The base is empty" in run("kb", "search", "boats", cwd=work).stderr
    added = run("kb", "add", ".", cwd=work)
    assert added.returncode == 1
    assert "2 added, 1 failed." in added.stdout
    assert "broken.pdf: is a broken PDF" in added.stderr
    assert "Search is by words alone, not by meaning: " in added.stderr
    again = run("kb", "add", "guide.md", cwd=work)
    assert (again.returncode, again.stdout) == (0, "1 unchanged.\n")
    found = run("kb", "search", "who inspects each boat", "--json", "-n", "1", cwd=work)
    hit = json.loads(found.stdout)
    assert hit["name"] == "standard.md"
    assert (work / "standard.md").read_text()[hit["start"] : hit["end"]] == hit["text"]
    marked = {hit["text"][start:end] for start, end in hit["highlights"]}
    assert {"inspects", "boat"} <= marked
    shown = run("kb", "show", hit["id"], cwd=work).stdout
    assert f"> standard.md: Standard 7 > 2 Inspection, line 9  {hit['id']}" in shown
    assert "> | 2.1 The harbour office" in shown
    good = run("kb", "verify", "The harbour office inspects each boat", "--paragraph", hit["id"], cwd=work)
    assert (good.returncode, "The quote is in" in good.stdout) == (0, True)
    bad = run("kb", "verify", "The harbour office inspects no boat", cwd=work)
    assert (bad.returncode, "word for word" in bad.stdout) == (1, True)
    guide = run("kb", "search", "every lantern boat", "--document", "guide.md", "--json", "-n", "1", cwd=work)
    hop = run("kb", "hop", json.loads(guide.stdout)["id"], cwd=work).stdout
    assert f"section 'Standard 7 2.1': {hit['id']}" in hop
    assert run("kb", "verify", cwd=work).returncode == 0
    (work / "guide.md").write_text("# Changed\n\nSomething else is written here now.\n")
    changed = run("kb", "verify", cwd=work)
    assert (changed.returncode, "changed" in changed.stdout) == (1, True)
    assert run("kb", "remove", "guide.md", cwd=work).returncode == 0
    rows = run("kb", "list", "--json", cwd=work).stdout.splitlines()
    assert [json.loads(row)["name"] for row in rows] == ["standard.md"]
    assert run("kb", "show", "guide.md", cwd=work).returncode == 2


@pytest.mark.promise("KB-11")
def test_a_search_is_limited_to_a_kind_or_goes_tier_by_tier(tmp_path: Path) -> None:
    work = folder(tmp_path)
    (work / "boats.py").write_text("def boats():\n    return 'every lantern boat of the harbour'\n")
    assert run("kb", "add", "standard.md", "boats.py", cwd=work).returncode == 0
    assert run("kb", "add", "guide.md", "--tier", "guide", cwd=work).returncode == 0

    def names(*arguments: str) -> list[str]:
        found = run("kb", *arguments, "--json", cwd=work)
        assert found.returncode == 0, found.stderr
        return [json.loads(row)["name"] for row in found.stdout.splitlines()]

    search = ("search", "boat of the harbour", "-n", "1")
    assert names("list", "--kind", "code") == ["boats.py"]
    assert names(*search, "--kind", "code") == ["boats.py"]
    assert names(*search, "--kind", "markdown") != ["boats.py"]
    assert names(*search, "--by-tier") == ["guide.md", "standard.md", "boats.py"]
    assert names(*search, "--by-tier", "--kind", "markdown") == ["guide.md", "standard.md"]
    assert names(*search, "--by-tier", "--tier", "code") == ["boats.py"]
    assert run("kb", "search", "boat", "--kind", "song", cwd=work).returncode == 2


def test_a_base_of_the_user_is_another_one(tmp_path: Path) -> None:
    work = folder(tmp_path)
    assert run("kb", "--user", "add", "guide.md", "--tier", "guide", cwd=work).returncode == 0
    assert run("kb", "list", cwd=work).stdout == ""
    assert "guide" in run("kb", "--user", "list", cwd=work).stdout
    assert json.loads(run("kb", "--user", "status", "--json", cwd=work).stdout)["tiers"] == {"guide": 3}


@pytest.mark.promise("KB-12")
def test_the_model_is_never_downloaded_unasked(tmp_path: Path) -> None:
    work = folder(tmp_path)
    refused = run("kb", "fetch", cwd=work)
    assert refused.returncode == 2
    assert "This downloads 91 MB, and nobody can be asked here. Give --yes" in refused.stderr
    run("kb", "add", "guide.md", cwd=work)
    found = list(tmp_path.parent.rglob("*.safetensors*"))
    assert found == []


def test_control_characters_of_documents_never_reach_the_terminal(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "evil.md").write_text("# \x1b[2JTitle\n\nThe whale \x1b]0;owned\x07 sings.\n")
    shown = run("kb", "add", "evil.md", cwd=work).stdout
    for arguments in (["search", "whale"], ["show", "evil.md"], ["list"], ["hop", "whale"]):
        shown += run("kb", *arguments, cwd=work).stdout
    assert "whale" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
