"""Programs that nobody waits for."""

import os
import time
from pathlib import Path

from handrail.tools.process import start_in_background

PROGRAM = """
import os, sys
with open("tries", "a") as file:
    file.write(f"{os.environ.get('SOME_API_KEY')} {os.getsid(0) != int(sys.argv[1])}\\n")
os.kill(os.getpid(), 9)
"""
DEADLINE = 60.0


def test_program_that_dies_is_started_again_twice_in_a_session_of_its_own_without_secrets(
    tmp_path: Path,
) -> None:
    (tmp_path / "dying.py").write_text(PROGRAM)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "SOME_API_KEY": "sk-123456789"}
    start_in_background("dying", [str(os.getsid(0))], tmp_path, environ)
    tries, limit = tmp_path / "tries", time.monotonic() + DEADLINE
    tries.touch()
    while tries.read_text().count("\n") < 3 and time.monotonic() < limit:
        time.sleep(0.01)
    assert tries.read_text() == "None True\n" * 3


def test_folder_that_is_gone_is_not_told(tmp_path: Path) -> None:
    start_in_background("dying", [], tmp_path / "gone", os.environ)
