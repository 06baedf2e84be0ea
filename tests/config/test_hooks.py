"""Hooks in settings: the user's count, those of a workspace once they and their programs are trusted."""

import os
from pathlib import Path

import pytest

from handrail.config.layers import LoadedSettings, load_settings
from handrail.config.places import Places, find_places
from handrail.config.trust import trust
from handrail.protocol.errors import ConfigProblem

HOOK = '[[hooks]]\non = "before_tool"\nmatch = ["run"]\nrun = ["python3", "guard.py"]\nseconds = 5\n'


@pytest.fixture
def places(home: Path) -> Places:
    return find_places(os.environ)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".handrail").mkdir(parents=True)
    (folder / ".handrail" / "config.toml").write_text(HOOK)
    (folder / ".handrail" / "guard.py").write_text("print()\n")
    return folder


def write(places: Places, text: str) -> None:
    places.settings.parent.mkdir(parents=True, exist_ok=True)
    places.settings.write_text(text)


def load(places: Places, workspace: Path | None = None, **environ: str) -> LoadedSettings:
    return load_settings(places, workspace, environ=environ)


def test_a_hook_of_the_user_runs_beside_their_settings(places: Places) -> None:
    write(places, HOOK)
    (hook,) = load(places).hooks
    assert (hook.settings.on, hook.settings.run) == ("before_tool", ("python3", "guard.py"))
    assert (hook.settings.match, hook.settings.seconds) == (("run",), 5)
    assert (hook.folder, hook.files) == (places.settings.parent, {})
    write(places, HOOK * 2)
    assert [hook.place for hook in load(places).hooks] == [f"{places.settings}:1", f"{places.settings}:6"]


@pytest.mark.promise("HOOK-6")
def test_a_hook_of_a_workspace_counts_only_once_it_is_trusted(places: Places, shop: Path) -> None:
    write(places, HOOK)
    before = load(places, shop)
    assert [hook.folder for hook in before.hooks] == [places.settings.parent]
    (ignored,) = before.ignored
    assert (ignored.key, "guard.py" in ignored.value) == ("hooks", True)
    assert "run programs" in ignored.why
    trust(places, shop, before.workspace_files)
    after = load(places, shop)
    # The same words, and another program: the one of the workspace is not taken for the user's own.
    assert [hook.folder for hook in after.hooks] == [places.settings.parent, shop / ".handrail"]
    assert len(after.settings.hooks) == 2


@pytest.mark.promise("HOOK-6")
@pytest.mark.parametrize("name", ["config.toml", "guard.py"])
def test_a_change_of_the_hook_or_of_its_program_ends_the_trust(places: Places, shop: Path, name: str) -> None:
    trust(places, shop, load(places, shop).workspace_files)
    assert load(places, shop).hooks
    with (shop / ".handrail" / name).open("a") as file:
        file.write("\n")
    changed = load(places, shop)
    assert (changed.trust, changed.hooks) == ("changed", ())


def test_programs_elsewhere_in_the_workspace_are_part_of_what_is_trusted(places: Places, shop: Path) -> None:
    (shop / "tools").mkdir()
    (shop / "tools" / "guard.sh").write_text("exit 0\n")
    (shop / ".handrail" / "link").symlink_to("../tools/guard.sh")
    for word in ("../tools/guard.sh", str(shop / "tools" / "guard.sh"), "link"):
        text = f'hooks = [{{on = "before_end", run = ["/bin/sh", "{word}"]}}]\n'
        (shop / ".handrail" / "config.toml").write_text(text)
        names = [each.name for each in load(places, shop).workspace_files]
        assert names == [".handrail/config.toml", "tools/guard.sh"]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('[[hooks]]\non = "before_tool"\nrun = []\n', 3, "hooks.run"),
        ('[[hooks]]\non = "sometimes"\nrun = ["x"]\n', 2, "hooks.on should be 'before_tool'"),
        ('[[hooks]]\non = "before_tool"\nrun = "x"\n', 3, "hooks.run should be a list"),
        (HOOK + '[[hooks]]\non = "before_tool"\ncommand = ["x"]\n', 8, "unknown key 'hooks.command'"),
        (HOOK + '[[hooks]]\non = "before_end"\nrun = ["x"]\nmatch = ["run"]\n', 9, "leave it out"),
        (HOOK + '[[hooks]]\non = "before_end"\nrun = ["x"]\nseconds = 601\n', 9, "hooks.seconds"),
        ('[[hooks]]\non = "before_tool"\n', 1, "hooks.run is missing"),
    ],
)
def test_a_mistake_in_a_hook_is_told_with_its_line(places: Places, text: str, line: int, told: str) -> None:
    write(places, text)
    with pytest.raises(ConfigProblem) as problem:
        load(places)
    assert str(problem.value).startswith(f"{places.settings}:{line}: ")
    assert told in str(problem.value)


def test_hooks_are_not_taken_from_the_environment(places: Places) -> None:
    with pytest.raises(ConfigProblem, match="HANDRAIL_HOOKS"):
        load(places, HANDRAIL_HOOKS="[]")
