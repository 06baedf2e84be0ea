from pathlib import Path

import pytest

from handrail.protocol.errors import PathProblem
from handrail.workspace.files import Workspace
from handrail.workspace.paths import inspect_path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "ws" / "src").mkdir(parents=True)
    return Workspace(tmp_path / "ws", state_folders=(tmp_path / "ws" / "data",))


@pytest.mark.parametrize(
    ("given", "shown", "inside"),
    [
        ("src/a.py", "src/a.py", True),
        ("./src/../src/a.py", "src/a.py", True),
        ("", ".", True),
        ("..", None, False),
        ("../ws/a", "a", True),
        ("../ws2/a", None, False),
        ("/etc/passwd", "/etc/passwd", False),
    ],
)
def test_a_path_is_resolved_before_it_is_judged(
    workspace: Workspace, given: str, shown: str | None, inside: bool
) -> None:
    place = workspace.resolve(given)
    assert place.inside is inside
    assert shown is None or place.path == shown


def test_an_absolute_path_into_the_workspace_is_inside(workspace: Workspace) -> None:
    assert workspace.resolve(str(workspace.root / "src/a.py")).path == "src/a.py"


@pytest.mark.promise("WORK-1")
def test_a_link_is_judged_by_where_it_leads(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (workspace.root / "door").symlink_to(tmp_path / "outside")
    (workspace.root / "repo").symlink_to(workspace.root / ".git")
    (workspace.root / "innocent").symlink_to(workspace.root / ".env")
    assert not workspace.resolve("door/file").inside
    assert not workspace.resolve("door/../outside/file").inside
    assert workspace.resolve("repo/config").in_git
    assert workspace.resolve("innocent").secret


def test_a_link_loop_is_a_path_problem(workspace: Workspace) -> None:
    (workspace.root / "one").symlink_to("two")
    (workspace.root / "two").symlink_to("one")
    with pytest.raises(PathProblem):
        workspace.read("one")


@pytest.mark.parametrize(
    "name", [".env", ".ENV", ".env.local", "sub/id_rsa", "tls/server.key", ".ssh/config"]
)
def test_likely_secrets_are_recognised(workspace: Workspace, name: str) -> None:
    assert workspace.resolve(name).secret


@pytest.mark.parametrize("name", [".env.example", "environment.py", "keyboard.txt", "id_rsa.pub", "src/a.py"])
def test_ordinary_files_are_no_secrets(workspace: Workspace, name: str) -> None:
    assert not workspace.resolve(name).secret


def test_a_link_named_like_a_secret_is_one(workspace: Workspace) -> None:
    (workspace.root / ".env").symlink_to("settings.txt")
    assert workspace.resolve(".env").secret


@pytest.mark.parametrize("name", [".git/config", "sub/.git/hooks/x", ".GIT/config"])
def test_git_is_recognised_at_any_depth(workspace: Workspace, name: str) -> None:
    assert workspace.resolve(name).in_git


@pytest.mark.parametrize("name", [".handrail/config.toml", ".orchestration/x.yaml", "data/log.db"])
def test_our_own_files_are_recognised(workspace: Workspace, name: str) -> None:
    assert workspace.resolve(name).in_state


@pytest.mark.parametrize("given", ["a\0b", "\ud800"])
def test_what_is_no_path_is_refused_in_words(workspace: Workspace, given: str) -> None:
    with pytest.raises(PathProblem) as caught:
        workspace.resolve(given)
    assert caught.value.reason == "invalid_path"
    str(caught.value).encode()


def test_a_circle_of_links_is_told_when_it_is_read_and_not_before(workspace: Workspace) -> None:
    (workspace.root / "one").symlink_to("one")
    assert workspace.resolve("one/below").inside
    assert workspace.sha256("one") is None
    with pytest.raises(PathProblem):
        workspace.read("one/below")


LOOK_ALIKES = {
    "app.py": ("\u0430pp.py", "\u0430\u0440\u0440.py", "\u0430\u0440\u0440.\u0440\u0443", "\u0391pp.py"),
    "paypal.py": ("\u0440\u0430\u0443\u0440\u0430\u04cf.\u0440\u0443", "\u0440aypal.py", "p\u0251ypal.py"),
    "scope.c": ("\u0455\u0441\u043e\u0440\u0435.\u0441", "sc\u03bfpe.c", "\u0455c\u0585pe.c", "sco\u03c1e.c"),
    "MAKE": ("\u041c\u0410\u041a\u0415", "\u039c\u0391\u039a\u0395", "\u13b7AK\u13ac", "m\u0430ke"),
    "x-y.txt": ("x\u2010y.txt", "\u0445-\u0443.txt", "x\u2212y.txt", "\u03c7\u2013y.txt"),
    "hoist.js": (
        "\u0570oist.js",
        "h\u043eist.js",
        "ho\u0456st.js",
        "\u04bb\u043e\u0456\u0455\u0442.\u0458\u0455",
    ),
}


@pytest.mark.promise("TERM-21")
@pytest.mark.parametrize(
    ("there", "name"), [(there, one) for there, all_ in LOOK_ALIKES.items() for one in all_]
)
def test_a_name_in_letters_that_look_like_an_existing_one_is_noticed(
    workspace: Workspace, there: str, name: str
) -> None:
    (workspace.root / there).touch()
    found = inspect_path(workspace.root / name)
    assert (found.twin, found.twin_by) == (there, "letters")


@pytest.mark.promise("TERM-21")
def test_a_name_in_another_script_alone_is_like_any_other(workspace: Workspace) -> None:
    (workspace.root / "app.py").touch()
    (workspace.root / "\u0434\u0430\u043d\u043d\u044b\u0435.py").touch()
    for name in (
        "\u043e\u0442\u0447\u0435\u0442.py",
        "\u0434\u0430\u043d\u043d\u044b\u04392.py",
        "\u03b4\u03b5\u03b4.py",
        "\u65e5\u672c.py",
        "app2.py",
        "a1l.py",
        "aIl.py",
    ):
        assert inspect_path(workspace.root / name).twin == "", name
        (workspace.root / name).touch()


def test_the_same_letters_in_another_case_come_before_look_alikes(workspace: Workspace) -> None:
    for name in ("\u0430pp.py", "APP.py"):
        (workspace.root / name).touch()
    assert inspect_path(workspace.root / "app.py").twin_by == "case"
