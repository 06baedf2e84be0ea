"""What holds for every test: a home of its own, no keys, no network beyond the loopback."""

import ipaddress
import itertools
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from handrail.config.settings import DatabaseSettings
from handrail.protocol.values import to_json

if TYPE_CHECKING:
    from tests.postgres import Server

NO_SERVER = "".join(
    f'[connections.{name}]\nbase_url = "http://127.0.0.1:1/v1"\n'
    for name in ("ollama", "llamacpp", "lmstudio", "vllm")
)
"""Settings under which no model answers on this machine, whatever runs on it."""
SHARED_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
LOCAL_NAMES = {"localhost", "localhost.localdomain", ""}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which sandboxes there are: each one's own look under load could give it other tests."""
    from tests.tools.sandbox.machine import probed

    node.workerinput["sandboxes"] = [to_json(found) for found in probed()]


def pytest_configure(config: pytest.Config) -> None:
    # The same examples in every run: what fails was changed. HYPOTHESIS_PROFILE=new looks for new ones.
    # No example is judged by its time: a busy machine is no fault of ours.
    untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("same", untimed, derandomize=True)
    settings.register_profile("new", untimed, derandomize=False)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
    if given := getattr(config, "workerinput", None):
        from tests.tools.sandbox.machine import told

        told(given["sandboxes"])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet. pytest would look at all it has made to number the next."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count(1))


@pytest.fixture(autouse=True)
def home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing of the real one, no key, keyring or proxy reaches the test or its children."""
    folder = next(homes)
    folder.mkdir(mode=0o700)
    for name in os.environ:
        upper = name.upper()
        if upper.endswith(("_API_KEY", "_PROXY")) or upper.startswith(("HANDRAIL_", "XDG_")):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")  # never that of a person
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("HANDRAIL_HOME", str(folder / "handrail"))
    monkeypatch.setenv("HANDRAIL_AUTO_ROUTE", "off")  # tests of routing turn it on
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture(scope="session")
def postgres() -> "Iterator[Server]":
    """A server for the tests of this process, started by the first that needs it."""
    from tests.postgres import Server

    server = Server()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> "DatabaseSettings":
    """Each database that a log can be in, with nothing in it."""
    if request.param == "sqlite":
        return DatabaseSettings()
    found: DatabaseSettings = request.getfixturevalue("postgres").workspace()
    return found


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder that is quick also where a test forces thousands of writes to the disk, where there is one."""
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY, prefix="handrail-test-") as folder:
        yield Path(folder)


@pytest.fixture
def no_server(home: Path) -> None:
    """Settings under which no model is found, whatever runs on this machine."""
    (home / "handrail").mkdir(mode=0o700)
    (home / "handrail" / "config.toml").write_text(NO_SERVER)


def is_local(host: object) -> bool:
    """Whether a connection to this host stays on the machine."""
    text = host.decode() if isinstance(host, bytes) else str(host)
    if text in LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def loopback_only() -> Iterator[None]:
    """Connecting or resolving beyond the loopback fails at once, so no test calls a hosted model."""

    def guard(name: str) -> Callable[..., Any]:
        real = getattr(socket.socket, name)

        def guarded(self: socket.socket, *arguments: Any) -> Any:
            address = arguments[-1]
            if self.family in (socket.AF_INET, socket.AF_INET6) and not is_local(address[0]):
                raise RuntimeError(f"a test tried to reach {address[0]}; tests stay on the loopback")
            return real(self, *arguments)

        return guarded

    real_lookup = socket.getaddrinfo

    def lookup(host: Any, *arguments: Any, **options: Any) -> Any:
        if host is not None and not is_local(host):
            raise RuntimeError(f"a test tried to look up {host}; tests stay on the loopback")
        return real_lookup(host, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, guard(name))
        patch.setattr(socket, "getaddrinfo", lookup)
        yield
