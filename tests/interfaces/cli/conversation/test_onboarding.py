"""The first screen where no model is ready, in a real terminal: a key, a local server, a download."""

import os
import socket
from pathlib import Path

import pytest

from handrail.config.credentials import Credentials
from handrail.config.places import find_places
from handrail.models.embedded.model_files import models_folder
from handrail.models.providers import provider_of_key
from tests.conftest import NO_SERVER
from tests.interfaces.cli.commands.setup.test_model_fetch import OUT_OF_REACH
from tests.interfaces.cli.program import Terminal, terminal
from tests.models.fake_server import FakeServer, Reply, Said

pytestmark = pytest.mark.usefixtures("no_server")
KEY = "sk-proj-0123456789abcdef0123456789"
REFUSED = Reply(
    b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}',
    status=401,
    content_type="application/json",
    framing="length",
)


def connect(name: str, url: str) -> None:
    """Settings under which nobody answers but this connection."""
    others = "".join(f"[conn{part}" for part in NO_SERVER.split("[conn") if part and f".{name}]" not in part)
    find_places(os.environ).settings.write_text(f'{others}[connections.{name}]\nbase_url = "{url}"\n')


def credentials() -> Path:
    return find_places(os.environ).credentials


def leave(talk: Terminal) -> None:
    talk.expect("\n> ")
    talk.type("\x04")
    assert talk.end() == 0


@pytest.mark.promise("TERM-13")
@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_without_a_model_three_doors_are_offered_and_who_leaves_is_told(key: str, tmp_path: Path) -> None:
    with terminal(cwd=tmp_path) as talk:
        for words in ("use a key", "use a local server", "download a small model", "1.1 GB", "k, s or d"):
            talk.expect(words)
        talk.type("x" + key)
        talk.expect("No model was chosen")
        assert talk.end() == 1
        assert talk.echoes()
    assert not credentials().exists()
    assert not models_folder(os.environ).exists()


@pytest.mark.promise("TERM-14")
def test_a_key_that_works_is_kept_for_the_user_alone_and_seen_nowhere(tmp_path: Path) -> None:
    with FakeServer([Said(text=("ok",))]) as server:
        connect("openai", f"{server.url}/v1")
        with terminal(cwd=tmp_path) as talk:
            talk.expect("k, s or d")
            talk.type("k" + KEY + "!\x7f\r")
            talk.expect(f"key   {len(KEY)} characters")
            talk.expect("works")
            talk.expect("model openai/")
            leave(talk)
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in talk.raw
    kept = [path for path in Path(os.environ["HOME"]).rglob("*") if path.is_file()]
    assert credentials() in kept
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


@pytest.mark.promise("TERM-14")
def test_a_key_that_is_refused_is_not_kept_and_the_doors_stay_open(tmp_path: Path) -> None:
    with FakeServer([REFUSED]) as server:
        connect("xai", f"{server.url}/v1")
        with terminal(cwd=tmp_path) as talk:
            talk.expect("k, s or d")
            talk.type("k")
            talk.type("a-key-of-no-known-shape\r")
            talk.expect("a anthropic")
            talk.type("x")
            talk.expect("refused")
            talk.expect("not stored")
            talk.expect("k, s or d")
            talk.type("\x03")
            assert talk.end() == 1
    assert not credentials().exists()


@pytest.mark.promise("TERM-14")
def test_a_key_that_cannot_be_checked_is_kept_and_that_is_said(tmp_path: Path) -> None:
    connect("anthropic", "http://127.0.0.1:1")
    with terminal(cwd=tmp_path) as talk:
        talk.expect("k, s or d")
        talk.type("ksk-ant-0123\r")
        talk.expect("could not be checked")
        talk.expect("stored")
        talk.expect("model anthropic/")
        leave(talk)
    stored = Credentials(find_places(os.environ), os.environ)
    assert stored.get("model/anthropic") == "sk-ant-0123"


@pytest.mark.promise("TERM-13")
def test_a_server_that_was_started_meanwhile_is_found_and_its_model_chosen(tmp_path: Path) -> None:
    with FakeServer([Said(text=("ok",))], models=()) as server:
        connect("ollama", f"{server.url}/v1")
        with terminal(cwd=tmp_path) as talk:
            talk.expect("k, s or d")
            talk.type("s")
            talk.expect("ollama answers, but has no model yet")
            server.models = ("small-one", "large-one", "text-embedder")
            talk.expect("k, s or d")
            talk.type("s")
            talk.expect("1  ollama/small-one")
            talk.expect("2  ollama/large-one")
            talk.expect("1 to 2")
            talk.type("2")
            talk.expect("ollama/large-one is your default now")
            talk.expect("model ollama/large-one")
            leave(talk)


@pytest.mark.promise("TERM-13")
def test_a_download_that_cannot_be_done_is_told_and_the_doors_stay_open(tmp_path: Path) -> None:
    with terminal(cwd=tmp_path, **OUT_OF_REACH) as talk:
        talk.expect("k, s or d")
        talk.type("d")
        talk.expect("package index: ")
        talk.expect("k, s or d")
        talk.type("\x03")
        assert talk.end() == 1


@pytest.mark.promise("EMB-1")
def test_ctrl_c_in_a_download_says_what_is_kept(tmp_path: Path) -> None:
    folder = models_folder(os.environ)
    with socket.create_server(("127.0.0.1", 0)) as never_answers:
        proxy = f"http://127.0.0.1:{never_answers.getsockname()[1]}"
        with terminal(cwd=tmp_path, **OUT_OF_REACH | {"HTTPS_PROXY": proxy}) as talk:
            talk.expect("k, s or d")
            talk.type("d")
            talk.expect("0/1117 MB  from the publisher")
            talk.type("\x03")
            talk.expect("0 of 1,117 MB are kept")
            assert talk.end() == 130
            assert "Traceback" not in talk.text
    assert not [path for path in folder.iterdir() if path.suffix == ".gguf"]


@pytest.mark.parametrize(
    ("key", "owner"),
    [
        ("sk-ant-api03-x", "anthropic"),
        ("sk-or-v1-x", "openrouter"),
        ("sk-proj-x", "openai"),
        ("sk-abcT3BlbkFJdef", "openai"),
        ("xai-x", "xai"),
        ("AIzaSyX", "gemini"),
        ("sk-0123456789abcdef", ""),
        ("something", ""),
    ],
)
def test_the_shape_of_a_key_tells_whose_it_is_or_nobody_is_named(key: str, owner: str) -> None:
    assert provider_of_key(key) == owner
