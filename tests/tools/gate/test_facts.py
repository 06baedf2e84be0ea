"""Random trees with links, random paths: what is allowed to be written lies where it may."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.policy.call_facts import Allow, Facts
from handrail.policy.decide import decide
from handrail.protocol.errors import PathProblem
from handrail.tools.gate.facts import path_facts
from handrail.workspace.files import Workspace
from handrail.workspace.writer import Writer

NAMES = (
    "a",
    "b",
    "src",
    ".git",
    ".handrail",
    ".env",
    ".ssh",
    "out",
    ".orchestration",
    "A",
    "c d",
    ".intentignore",
)
PROTECTED = {".git", ".handrail", ".orchestration", ".intentignore", ".ssh"}
name = st.sampled_from(NAMES)
part = st.one_of(name, name, st.sampled_from(("..", ".", "", "ws", "top")))
path = st.builds(
    lambda absolute, parts: ("{top}/" if absolute else "") + "/".join(parts),
    st.booleans(),
    st.lists(part, min_size=1, max_size=5),
)
entry = st.tuples(
    st.sampled_from(("folder", "file", "link", "link")), st.lists(name, min_size=1, max_size=3), path
)
tree = st.lists(entry, max_size=8)


def build(top: Path, root: Path, entries: list[tuple[str, list[str], str]]) -> None:
    """As much of the tree as can be made."""
    for kind, names, target in entries:
        place = root.joinpath(*names)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "folder":
                place.mkdir(exist_ok=True)
            elif kind == "file":
                place.touch()
            else:
                place.symlink_to(target.replace("{top}", str(top)) or ".")
        except OSError:
            continue


def may_write(workspace: Workspace, given: str) -> Path | None:
    """Where a write that needs no asking would go; None where it is refused or asked."""
    try:
        place = workspace.resolve(given)
    except PathProblem:
        return None
    facts = path_facts(workspace.root, place, to_change=True)
    allowed = isinstance(decide(Facts("write", "write", "auto", path=facts)), Allow)
    return place.absolute if allowed else None


@pytest.mark.promise("POL-21")
@settings(max_examples=400, deadline=None)
@given(tree, tree, path)
def test_an_allowed_write_ends_inside_and_outside_every_protected_place(
    inside: list[tuple[str, list[str], str]], outside: list[tuple[str, list[str], str]], wanted: str
) -> None:
    with TemporaryDirectory() as folder:
        top = Path(os.path.realpath(folder))
        root = top / "ws"
        root.mkdir()
        build(top, top / "out", outside)
        build(top, root, inside)
        given_path = wanted.replace("{top}", str(top))
        absolute = may_write(Workspace(root, state_folders=(top / "out" / "b",)), given_path)
        if absolute is None:
            return
        real = Path(os.path.realpath(os.path.join(root, given_path)))
        assert real == absolute
        assert real.is_relative_to(root)
        assert real != root
        assert not set(PROTECTED) & {each.lower() for each in real.relative_to(root).parts}
        assert not real.name.startswith(".env")
        # The kernel, which follows every link, ends at the same place or nowhere: something on the way is
        # missing, no folder, or a circle of links.
        os.makedirs(real.parent, exist_ok=True)
        try:
            descriptor = os.open(os.path.join(root, given_path), os.O_WRONLY | os.O_CREAT)
        except OSError:
            return
        assert os.path.samefile(real, f"/proc/self/fd/{descriptor}")
        os.close(descriptor)


@pytest.mark.promise("POL-22")
def test_a_link_put_there_after_the_decision_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "ws", tmp_path / "out"
    (root / "src").mkdir(parents=True)
    outside.mkdir()
    assert may_write(Workspace(root), "src/new.py") == root / "src" / "new.py"
    (root / "src").rmdir()
    (root / "src").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        Writer(root).make_folders(["src/sub"])
    assert list(outside.iterdir()) == []


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_judged_without_a_crash(text: str) -> None:
    with TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        absolute = may_write(Workspace(root), text)
        if absolute is not None:
            assert absolute.is_relative_to(root)
            absolute.parent.mkdir(parents=True, exist_ok=True)
            absolute.write_text("x")
            assert os.path.exists(os.path.join(root, text))
