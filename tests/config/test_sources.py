"""Definitions of sources: what they can say, and what is wrong with those that cannot be used."""

import json
import os
from pathlib import Path

import pytest

from handrail.config.places import find_places
from handrail.config.ready_sources import READY_SOURCES
from handrail.config.source_tools import ApprovedTools
from handrail.config.sources import SourceFolders, parse_source
from handrail.protocol.errors import ConfigProblem
from handrail.tools.sources.launch import SourceFailed, launch_of
from tests.tools.sources.places import define, own, shared


def folders(workspace: Path) -> SourceFolders:
    return SourceFolders(find_places(os.environ), workspace)


class Stored:
    """Stored credentials, in memory."""

    def __init__(self, **values: str) -> None:
        self.values = values

    def get(self, name: str) -> str | None:
        return self.values.get(name.rpartition("/")[2])

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


@pytest.mark.parametrize("name", sorted(READY_SOURCES))
def test_ready_definitions_are_valid(name: str) -> None:
    file = parse_source(Path("source.toml"), READY_SOURCES[name].encode())
    assert file.description.endswith(".")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('command = ["x"]\nnetwrk = true', ":2: unknown key 'netwrk'"),
        ("description = 'x'", "command should be there, or `url`"),
        ('command = ["x"]\nurl = "https://x"', "one of the two"),
        ('url = "http://example.com"', "without encryption only this machine"),
        ('url = "https://user@example.com"', "should have no user name"),
        ('url = "https://x"\nwrites = ["workspace"]', "writes is for a command"),
        ('command = ["x"]\ncall_seconds = 0', ":2: call_seconds should be"),
        ("command = [", "not valid TOML"),
    ],
)
def test_a_wrong_definition_is_reported_by_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = own(os.environ)
    path.write_text(text)
    found, wrong = folders(tmp_path).all()
    assert not found
    assert problem in str(wrong["plain"])
    assert str(path) in str(wrong["plain"])


def test_the_servers_of_mcp_json_are_sources_of_the_workspace(tmp_path: Path) -> None:
    shared(
        tmp_path,
        files={"command": "npx", "args": ["-y", "files"], "env": {"A": "b"}, "handrail": {"network": False}},
        web={
            "type": "http",
            "url": "https://example.com/mcp",
            "headers": {"X-Key": "${KEY}"},
            "disabled": True,
        },
        old={"type": "stdio", "command": 3},
    )
    found, wrong = folders(tmp_path).all()
    files, web = found
    assert files.file.command == ("npx", "-y", "files")
    assert not files.file.network
    assert web.file.variables == ["KEY"]
    assert not web.file.enabled
    assert "old: command.0 should be a valid string" in str(wrong["old"])


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"mcpServers": []}', "[" * 5_000, '{"mcpServers": {"a b": {}}}']
)
def test_an_unreadable_mcp_json_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    found, wrong = folders(tmp_path).all()
    assert not found
    assert len(wrong) == 1


def test_a_source_of_the_user_goes_before_one_of_the_workspace(tmp_path: Path) -> None:
    own(os.environ, description="mine")
    define(tmp_path, description="theirs")
    assert folders(tmp_path).used()["plain"].file.description == "mine"
    assert len(folders(tmp_path).all()[0]) == 2


def test_a_definition_of_a_workspace_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    path = define(outside)
    work = tmp_path / "work"
    (work / "sources" / "plain").mkdir(parents=True)
    (work / "sources" / "plain" / "source.toml").symlink_to(path)
    _, wrong = folders(work).all()
    assert "leads elsewhere" in str(wrong["plain"])


@pytest.mark.promise("SOURCE-7")
def test_variables_are_filled_in_once_and_secrets_are_known(tmp_path: Path) -> None:
    own(
        os.environ,
        command=["x", "${WORKSPACE}/a", "${MISSING:-usual}"],
        env={"TOKEN": "Bearer ${API_TOKEN}", "PLAIN": "${COLOR}"},
    )
    source = folders(tmp_path).named("plain")
    environ = {**os.environ, "API_TOKEN": "from-environment-123", "COLOR": "${API_TOKEN}"}
    launch = launch_of(source, tmp_path, Stored(), environ)
    assert launch.words == ("x", f"{tmp_path}/a", "usual")
    assert launch.environ == {"TOKEN": "Bearer from-environment-123", "PLAIN": "${API_TOKEN}"}
    assert launch.secrets.hide("from-environment-123") == "[secret API_TOKEN]"
    assert "from-environment" not in repr(launch)
    stored = launch_of(source, tmp_path, Stored(API_TOKEN="stored-12345678"), environ)
    assert stored.environ["TOKEN"] == "Bearer stored-12345678"
    with pytest.raises(SourceFailed, match="needs COLOR"):
        launch_of(source, tmp_path, Stored(API_TOKEN="stored-12345678"), {"HOME": "/"})


def test_approved_tools_belong_to_one_version_of_the_definition(tmp_path: Path) -> None:
    approved = ApprovedTools(find_places(os.environ), tmp_path)
    own(os.environ)
    source = folders(tmp_path).named("plain")
    assert approved.of(source) is None
    approved.approve(source, {"echo": "1"})
    assert approved.of(source) == {"echo": "1"}
    own(os.environ, description="changed")
    assert approved.of(folders(tmp_path).named("plain")) is None
    file = find_places(os.environ).data / "source-tools.json"
    file.write_text(json.dumps({"plain": "broken"}))
    assert approved.of(source) is None


def test_a_definition_that_is_no_file_is_reported(tmp_path: Path) -> None:
    path = own(os.environ)
    path.unlink()
    os.mkfifo(path)
    _, wrong = folders(tmp_path).all()
    assert "is not a file" in str(wrong["plain"])
    with pytest.raises(ConfigProblem):
        folders(tmp_path).named("plain")


@pytest.mark.promise("SOURCE-3")
@pytest.mark.parametrize(
    ("words", "env", "names"),
    [
        (["node", "${WORKSPACE}/server.js"], {}, "server.js"),
        (["python", "${ROOT:-tools}/server.py"], {}, "tools/server.py"),
        (["python", "${HERE}/server.py"], {}, "server.py"),
        (["node", "--require=${WORKSPACE}/hook.js", "x"], {}, "hook.js"),
        (["node", "-r./hook.js", "x"], {}, "hook.js"),
        (["node", "server"], {}, "server.js"),
        (["node", "."], {}, "package.json"),
        (["python", "-m", "server"], {}, "server.py"),
        (["python", "-um", "tools.server"], {}, "tools/server/__main__.py"),
        (["python", "-mtools.server"], {}, "tools/__init__.py"),
        (["python", "tools"], {}, "tools/__main__.py"),
        (["bash", "-c", "cd x; exec python -m server"], {}, "server.py"),
        (["python", "-m", "server"], {"PYTHONPATH": "/x:${WORKSPACE}/lib"}, "lib/server.py"),
        (["serve"], {"PATH": "${WORKSPACE}/bin:/bin"}, "bin/serve"),
        (["node", "x"], {"NODE_OPTIONS": "--import file://${WORKSPACE}/hook.mjs"}, "hook.mjs"),
        (["x"], {"LD_PRELOAD": "${WORKSPACE}/e.so"}, "e.so"),
    ],
)
def test_a_program_of_the_workspace_cannot_be_replaced_after_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], env: dict[str, str], names: str
) -> None:
    """However the definition names it; the trust was for its bytes."""
    monkeypatch.setenv("HERE", str(tmp_path))
    program = tmp_path / names
    program.parent.mkdir(parents=True, exist_ok=True)
    shared(tmp_path, plain={"command": words[0], "args": words[1:], "env": env})
    hashes = {folders(tmp_path).named("plain").sha256}
    for text in ("first", "second"):
        program.write_text(text)
        source = folders(tmp_path).named("plain")
        assert source.programs[names] == text.encode()
        hashes.add(source.sha256)
    assert len(hashes) == 3


def test_a_folder_of_the_workspace_that_a_source_is_told_of_is_not_its_program(tmp_path: Path) -> None:
    """Else each change of the project would need new trust."""
    for name in ("package.json", "main.py"):
        (tmp_path / name).write_text("{}")
    shared(tmp_path, plain={"command": "npx-like", "args": ["-y", "files", "${WORKSPACE}"]})
    assert not folders(tmp_path).named("plain").programs


def test_a_definition_that_names_too_much_to_look_for_is_refused(tmp_path: Path) -> None:
    shared(tmp_path, plain={"command": "x", "args": ["b c " * 900]})
    assert not folders(tmp_path).named("plain").programs
    many = [" ".join(f"a{number}x{each}" for each in range(20)) for number in range(90)]
    shared(tmp_path, plain={"command": "x", "args": many})
    with pytest.raises(ConfigProblem, match="put them in a script"):
        folders(tmp_path).named("plain")
