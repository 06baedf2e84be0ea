"""The login shell's PATH: read from a noisy profile, and given up on where the profile hangs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from handrail.tools.login_path import is_poor, joined, read_login_path
from tests.interfaces.cli.program import environment
from tests.processes import gone, lasting

pytestmark = pytest.mark.anyio
POOR = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MINE = "/opt/mine/bin:/usr/bin:/bin"
"""Whole, as /etc/profile of some systems replaces the PATH that a login shell is given."""
NOISE = "echo welcome; echo PATH=/evil; printf '\\033]0;title\\a\\377'; read -r answer\n"
NOISE += f"export PATH={MINE}\n"


def profile(home: Path, text: str, name: str = ".bash_profile") -> dict[str, str]:
    """The environment that a desktop would give, with this profile in the home folder."""
    (home / name).write_text(text)
    bash = shutil.which("bash") or "/bin/bash"
    return {"HOME": str(home), "SHELL": bash, "PATH": POOR, "MY_TOKEN": "secret-0123456789"}


@pytest.mark.promise("PATH-1")
async def test_the_path_is_read_from_a_profile_that_prints_and_asks(home: Path) -> None:
    assert await read_login_path(profile(home, NOISE), 60) == MINE


@pytest.mark.promise("PATH-1")
async def test_a_profile_that_hangs_is_ended_with_all_it_started(home: Path) -> None:
    word = lasting()
    hangs = profile(home, f"trap '' TERM HUP; sleep {word} & sleep {word}\n")
    assert await read_login_path(hangs, 1.0) == ""
    assert await gone(word)


@pytest.mark.promise("PATH-1")
async def test_where_an_interactive_shell_fails_the_login_shell_alone_is_asked(home: Path) -> None:
    text = "case $- in *i*) exit 3;; esac; PATH=/opt/login/bin:$PATH\n"
    assert (await read_login_path(profile(home, text), 60)).startswith("/opt/login/bin:")


@pytest.mark.parametrize("shell", ["/bin/false", "/usr/bin/env", "bash"])
async def test_a_shell_that_is_none_gives_no_path(shell: str, home: Path) -> None:
    environ = profile(home, "PATH=/opt/mine/bin\n") | {"SHELL": shell}
    found = await read_login_path(environ, 60)
    assert found == "" or (shell == "bash" and found)  # a relative name: the account's own shell is asked


async def test_profiles_get_no_secrets(home: Path) -> None:
    environ = profile(home, "PATH=/opt/${MY_TOKEN:-none}/bin\n")
    assert await read_login_path(environ, 60) == "/opt/none/bin"


def test_only_a_path_of_the_system_is_poor() -> None:
    assert is_poor(POOR)
    assert is_poor("")
    assert not is_poor(f"{POOR}:/home/me/.local/bin")
    assert joined("/opt/a:relative:/usr/bin", POOR).split(os.pathsep)[:2] == ["/opt/a", "/usr/bin"]


@pytest.mark.promise("PATH-1")
def test_a_server_without_a_terminal_gives_its_commands_the_login_path(home: Path, tmp_path: Path) -> None:
    import subprocess

    program = "import anyio, os; from handrail.tools.login_path import use_login_path as u; "
    program += "print(repr(anyio.run(u)), os.environ['PATH'])"
    environ = environment(**profile(home, f"PATH={MINE}\n"))
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert ran.stdout.split() == ["''", f"{MINE}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin"]
