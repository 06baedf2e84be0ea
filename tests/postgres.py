"""A real PostgreSQL for tests, in a folder of its own; run as a program, it installs one."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from handrail.config.settings import DatabaseSettings

FOLDERS = ("/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt")
MISSING = (
    "There is no PostgreSQL for the tests of shared logs. Install one: `apt-get install postgresql` (it need "
    "not run), or `brew install postgresql`."
)
USER = "handrail"
DEADLINE = 60
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "300",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "fatal",
    "autovacuum": "off",
    "max_prepared_transactions": "0",
    "jit": "off",
}


def find_program(name: str) -> str:
    """The path of one of PostgreSQL's programs, of the newest version; raises FileNotFoundError."""
    found = [each for folder in FOLDERS for each in Path(folder).glob(f"*/bin/{name}")]
    if found:
        return str(max(found, key=lambda path: (len(path.parts[-3]), path.parts[-3])))
    if here := shutil.which(name):
        return here
    raise FileNotFoundError(MISSING)


def ordinary_user() -> pwd.struct_passwd | None:
    """Whom the server runs as, since it refuses to be root; None: as we do."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise FileNotFoundError("PostgreSQL does not run as root, and there is no user `nobody` here.")


def as_ordinary_user(*command: str) -> list[str]:
    """The command as somebody who is not root; it ends with the thread that starts it."""
    if not (setpriv := shutil.which("setpriv")):
        return list(command)
    user = ordinary_user()
    who = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if user else []
    return [setpriv, *who, "--pdeathsig=QUIT", *command]


class Server:
    """One server; each test takes a workspace, or a database, of its own in it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="handrail-postgres-"))
        if user := ordinary_user():
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._data = self.folder / "data"
        self._names = 0
        self._process: subprocess.Popen[bytes] | None = None
        initdb = [find_program("initdb"), "--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]
        subprocess.run(
            as_ordinary_user(*initdb, f"--username={USER}", str(self._data)),
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            timeout=DEADLINE,
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def workspace(self) -> DatabaseSettings:
        """Settings for a log of which there is nothing yet."""
        self._names += 1
        return DatabaseSettings(self.url, f"test-{os.getpid()}-{self._names}")

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        place = [f"-cunix_socket_directories={self.folder}", f"-cport={self.port}", "-D", str(self._data)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                as_ordinary_user(find_program("postgres"), *place, *options),
                cwd=self.folder,
                stderr=log,
                stdout=log,
            )
        deadline = time.monotonic() + DEADLINE
        while subprocess.run([find_program("pg_isready"), "-q", "-d", self.url], check=False).returncode:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start"

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End the server: by SIGQUIT at once, as a crash does."""
        if self._process:
            self._process.send_signal(how)
            self._process.wait(DEADLINE)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)


def main() -> None:
    try:
        find_program("initdb")
    except FileNotFoundError:
        if os.geteuid() == 0 and shutil.which("apt-get"):
            sys.stderr.write("installing PostgreSQL for the tests of shared logs, once\n")
            system = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            for step in (["update"], ["install", "--no-install-recommends", "postgresql"]):
                subprocess.run(["apt-get", "-qq", *step], env=system, check=False)
        try:
            find_program("initdb")
        except FileNotFoundError as missing:
            sys.exit(str(missing))


if __name__ == "__main__":
    main()
