"""examples/compose without Docker: its files fit together, and what it starts works on a real PostgreSQL."""

import re
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import HTTPCookieProcessor, build_opener

import yaml  # type: ignore[import-untyped]

from handrail.config.layers import env_variable
from handrail.config.settings import setting_keys
from tests.project.source import ROOT
from tests.system.worker_fleet import FakeModel, Running, changed, project, running, settings

if TYPE_CHECKING:
    from tests.postgres import Server

FOLDER = ROOT / "examples" / "compose"
OF_OTHERS = {"HANDRAIL_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
VARIABLE = re.compile(r"\$\{(\w+)(?::[-?]([^}]*))?\}")


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))["services"]
    return found


def test_every_variable_is_one_that_handrail_knows_or_that_the_example_sets() -> None:
    text = (FOLDER / "compose.yaml").read_text("utf-8")
    lines = (FOLDER / "env.example").read_text("utf-8").splitlines()
    given = {line.partition("=")[0] for line in lines if "=" in line}
    assert {name for name, _ in VARIABLE.findall(text)} == given
    known = {env_variable(key) for key in setting_keys()} | OF_OTHERS
    assert set(services()["worker"]["environment"]) <= known
    assert set(services()["server"]["environment"]) <= known


def test_image_copies_what_is_there_and_installs_the_extra() -> None:
    text = (FOLDER / "Dockerfile").read_text("utf-8")
    for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in line.split()[:-1])
    assert "/handrail[distributed]" in text
    assert (FOLDER / services()["server"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / services()["server"]["build"]["dockerfile"]).is_file()


def test_services_work_together(postgres: "Server", tmp_path: Path) -> None:
    found, place, model = services(), postgres.workspace(), FakeModel()
    port = free_port()
    values = {
        "POSTGRES_PASSWORD": "unused",
        "WORKSPACE_NAME": place.workspace,
        "HANDRAIL_MODEL": "mine/test-model",
        "HANDRAIL_TOKEN": "a-token-of-more-than-32-characters-for-tests",
    }
    root = project(tmp_path / "work", 4)
    with model.server, ExitStack() as stack:
        home = settings(model, tmp_path / "home")

        def start(name: str) -> Running:
            environment = {key: filled(text, values) for key, text in found[name]["environment"].items()}
            words = [filled(word, values) for word in found[name]["command"]]
            local = {"8642": str(port), "/work": str(root), "0.0.0.0": "127.0.0.1"}  # noqa: S104
            words = [local.get(word, word) for word in words]
            return stack.enter_context(
                running(*words, home=home, cwd=tmp_path, url=place.url, **without_url(environment))
            )

        server, *workers = start("server"), start("worker"), start("worker")
        for each in workers:
            each.until("worker ")
        address = re.search(r"http\S+", server.until("Handrail is at"))
        assert address
        browser = build_opener(HTTPCookieProcessor())
        with browser.open(address.group(), timeout=60) as page:
            assert page.status == 200
        environment = {key: filled(text, values) for key, text in found["server"]["environment"].items()}
        split = stack.enter_context(
            running(
                *("split", "Change TEXT", "--files", "*.py", "--granularity", "fine", "--start", "--json"),
                home=home,
                cwd=root,
                url=place.url,
                **without_url(environment),
            )
        )
        assert split.end() == 0, split.lines
        assert split.json["run_on"] == "workers"
        assert len(changed(root)) == 4


def filled(text: str, values: dict[str, str]) -> str:
    return VARIABLE.sub(lambda found: values.get(found.group(1), ""), text)


def without_url(environment: dict[str, str]) -> dict[str, str]:
    """The address of the database is that of the test."""
    return {key: value for key, value in environment.items() if key != "HANDRAIL_DATABASE"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port
