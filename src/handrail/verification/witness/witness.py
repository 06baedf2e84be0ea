"""Watch a test run from inside, and say whether its result can be believed.

Code under test runs in the process that reports on it: it can end the process with exit status 0, write a
report of its own, or replace the functions that let a test fail. So a program of Handrail's is in the
project's own pytest or unittest. It records what happens, and at the end lets tests of its own fail.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from handrail.storage.scratch import put_into_scratch

INJECTED = Path(__file__).parent / "injected"
PLUGIN, RUNNER = "handrail_witness_pytest", "handrail_witness_unittest.py"
KEY_FILE, RECORD_FILE = "witness-key", "witness"
MAX_NAMED = 3
NO_END = (
    "exit status 0, but the tests did not run to their end: code of the project ends the process, or keeps"
    " Handrail from seeing how the tests ended"
)
NOT_FAILING = (
    "tests that must fail pass ({ways}): code of the project changes how tests run. Find what it replaces in"
    " the test runner"
)
HIDDEN = "tests failed, and the report does not say so: {tests}"
INVENTED = "its report names more tests that passed than were seen to pass"


class Record(msgspec.Struct):
    """What the injected program wrote at the end of a run."""

    key: str
    passed: list[str]
    failed: list[str]
    undetected: list[str]
    """Ways to fail that were not reported as failures."""
    replaced: list[str]
    """Functions of the test runner that are not those that were there at the beginning."""


class Witness(NamedTuple):
    """What a test run is started with, to be watched."""

    words: tuple[str, ...]
    variables: Mapping[str, str]
    key: str

    def place_key(self, folder: Path) -> None:
        """Into the folder of the report; the injected program removes it before code of the project runs."""
        put_into_scratch(folder, KEY_FILE, self.key.encode(), 0o600)

    def record(self, files: Mapping[str, bytes]) -> Record | None:
        """What was seen; None if the run did not reach its end."""
        try:
            found = msgspec.json.decode(files.get(RECORD_FILE, b""), type=Record)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if secrets.compare_digest(found.key.encode(), self.key.encode()) else None

    def was_never_loaded(self, code: int | None, files: Mapping[str, bytes]) -> bool:
        """Whether pytest did not find the plugin, because its interpreter ignores PYTHONPATH.

        Its key is still there then. No output is asked: code of the project could print it.
        """
        return code == PYTEST_USAGE and files.get(KEY_FILE) == self.key.encode()


PYTEST_USAGE = 4


def witness_for(tool: str, words: tuple[str, ...], environ: Mapping[str, str], folder: str) -> Witness | None:
    """How to run these words with a witness; None for a tool that cannot have one."""
    variables = {"HANDRAIL_WITNESS": folder}
    key = secrets.token_hex(16)
    if tool == "pytest" and words:
        path = os.pathsep.join(filter(None, (str(INJECTED), environ.get("PYTHONPATH", ""))))
        program = 3 if words[1:3] == ("-m", "pytest") else 1
        watched = (*words[:program], "-p", PLUGIN, *words[program:])
        return Witness(watched, variables | {"PYTHONPATH": path}, key)
    if tool == "unittest" and words[1:3] == ("-m", "unittest"):
        return Witness((words[0], str(INJECTED / RUNNER), *words[3:]), variables, key)
    return None


def doubt(record: Record | None, passed: int) -> str:
    """Why a run that ended with exit status 0 cannot be believed; empty: it can."""
    if record is None:
        return NO_END
    if record.undetected:
        return NOT_FAILING.format(ways=", ".join(record.undetected[:MAX_NAMED]))
    if record.failed:
        return HIDDEN.format(tests=", ".join(record.failed[:MAX_NAMED]))
    return INVENTED if passed > len(record.passed) else ""
