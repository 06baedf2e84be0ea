"""Running one hook: JSON in on standard input, JSON out on standard output, and nothing of it left behind.

It is the user's own program, so that no sandbox confines it. What keeps the model from becoming its author is
that it runs beside the settings that name it, and no file of the workspace that was not trusted.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from pydantic import ValidationError

from handrail.config.hooks import Hook, file_of_workspace
from handrail.protocol.values import HookPoint, Value
from handrail.storage.scratch import make_scratch, put_into_scratch, remove_scratch
from handrail.tools.clip import head_and_tail, plain
from handrail.tools.environment import without_secrets
from handrail.tools.output import Output
from handrail.tools.process import Ended, run_process
from handrail.tools.sandbox.guardian import LEFT
from handrail.tools.sandbox.landlock import guarded
from handrail.tools.secrets import Secrets

MOST_OUTPUT = 4_000_000
"""Bytes of an answer; it may hold the whole text of a file."""
MOST_ERRORS = 1_000
MOST_TEXT = 8_000
"""Characters of what a hook says in words."""
MOST_NAME = 80
CHUNK = 1 << 16


class Answer(Value):
    """What a hook may say at any point; `ALLOWED` is what it may say where it runs."""

    deny: str | None = None
    arguments: dict[str, Any] | None = None
    tell: str | None = None
    demand: str | None = None


ALLOWED: Mapping[HookPoint, tuple[str, ...]] = {
    "before_tool": ("deny", "arguments"),
    "after_tool": ("tell",),
    "before_end": ("demand",),
    "session_start": ("tell",),
}


class Said(NamedTuple):
    """What came of a run: an answer, or how it failed."""

    answer: Answer
    failed: str = ""


class _Printed(NamedTuple):
    output: bytearray
    errors: Output


def name_of(hook: Hook) -> str:
    """The program, as its settings name it, on one line."""
    words = plain(shlex.join(hook.settings.run))
    return words if len(words) <= MOST_NAME else f"{words[: MOST_NAME - 1]}…"


def problem_of(hook: Hook, workspace: Path) -> str:
    """Why the hook could not be started, as far as that can be seen; empty where it could."""
    with ExitStack() as held:
        try:
            _words(hook, workspace, _path_outside(workspace), held)
        except OSError as error:
            return str(error.strerror or error)
    return ""


async def run_hook(hook: Hook, question: Mapping[str, Any], workspace: Path, secrets: Secrets) -> Said:
    """What the hook says to the question; a hook that cannot be understood has failed."""
    path = _path_outside(workspace)
    printed = _Printed(bytearray(), Output(MOST_ERRORS, MOST_ERRORS))
    with ExitStack() as held:
        try:
            words = _words(hook, workspace, path, held)
        except OSError as error:
            return _failure(str(error.strerror or error), secrets)
        environ = without_secrets(os.environ, secrets.variables)
        environ |= {"HANDRAIL_WORKSPACE": str(workspace), "PATH": path}
        ended = await _run(hook, words, json.dumps(question).encode(), environ, printed)
    if isinstance(ended, str):
        return _failure(ended, secrets)
    if len(printed.output) > MOST_OUTPUT:
        return _failure(f"it printed more than {MOST_OUTPUT:,} bytes", secrets)
    if ended.timed_out:
        return _failure(f"it took longer than {hook.settings.seconds:g} s", secrets)
    if ended.code != 0:
        said = plain(printed.errors.ends(MOST_ERRORS)).strip()
        return _failure(f"{_how(ended)}{f': {said}' if said else ''}", secrets)
    return _read(hook, bytes(printed.output).removesuffix(LEFT), secrets)


async def _run(
    hook: Hook, words: list[str], question: bytes, environ: Mapping[str, str], printed: _Printed
) -> Ended | str:
    """How it ended, or why it could not be started."""

    def take(chunk: bytes) -> bool:
        printed.output.extend(chunk)
        return len(printed.output) <= MOST_OUTPUT

    reading, writing = os.pipe()
    with ExitStack() as opened:
        opened.callback(os.close, reading)
        opened.callback(os.close, writing)
        os.set_blocking(reading, False)
        # A file, not a pipe: a hook that does not read what it is given holds nobody up.
        given = opened.enter_context(tempfile.TemporaryFile())
        given.write(question)
        given.seek(0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_all, reading, printed.errors)
            try:
                ended: Ended | str = await run_process(
                    guarded(words) if sys.platform == "linux" else words,
                    folder=hook.folder,
                    environment=environ,
                    timeout=hook.settings.seconds,
                    take=take,
                    errors=writing,
                    given=given.fileno(),
                )
            except OSError as error:
                ended = f"it cannot be started ({error.strerror or error})"
            tasks.cancel_scope.cancel()
        _read_ready(reading, printed.errors)
        return ended


async def _read_all(reading: int, errors: Output) -> None:
    while True:
        await anyio.wait_readable(reading)
        _read_ready(reading, errors)


def _read_ready(reading: int, errors: Output) -> None:
    with suppress(BlockingIOError):
        errors.add(os.read(reading, CHUNK))


def _words(hook: Hook, workspace: Path, path: str, held: ExitStack) -> list[str]:
    """The words to start, while `held` lasts; raises OSError where that is not there or not the user's."""
    first, *others = [os.path.expanduser(word) for word in hook.settings.run]
    if "/" not in first:
        found = shutil.which(first, path=path)
        if found is None:
            raise FileNotFoundError(f"there is no program {first} on your PATH outside the workspace")
        first = found
    root = Path(os.path.realpath(workspace))
    return [_word(word, hook, root, held) for word in (first, *others)]


def _word(word: str, hook: Hook, root: Path, held: ExitStack) -> str:
    """The word as it is started; raises PermissionError for a file of the workspace that is not trusted."""
    file = file_of_workspace(word, hook.folder, root)
    if file is None:
        return word
    closed = file.is_relative_to(os.path.realpath(hook.folder))
    if not hook.files and closed:  # a user may work in a folder that holds their settings
        return word
    data = file.read_bytes() if hook.files else b""
    if hook.files.get(file.relative_to(root).as_posix()) != hashlib.sha256(data).hexdigest():
        way = "`handrail trust` lets you look at it" if hook.files else "keep it beside your settings"
        raise PermissionError(
            f"{file.relative_to(root)} is a file of the workspace that is not trusted: {way}"
        )
    if closed:
        return word
    # A command in the background could write another file there before the program is started.
    copy = make_scratch()
    held.callback(remove_scratch, copy)
    put_into_scratch(copy, file.name, data, file.stat().st_mode & 0o700)
    return str(copy / file.name)


def _path_outside(workspace: Path) -> str:
    """The folders of the PATH in which the model cannot put a program."""
    root = os.path.realpath(workspace)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [
        each
        for each in folders
        if os.path.isabs(each) and not Path(os.path.realpath(each)).is_relative_to(root)
    ]
    return os.pathsep.join(kept)


def _how(ended: Ended) -> str:
    if ended.code is not None and ended.code < 0:
        return f"it was ended by signal {-ended.code}"
    return f"it ended with status {ended.code}"


def _read(hook: Hook, output: bytes, secrets: Secrets) -> Said:
    """The answer that was printed; nothing printed is nothing said."""
    if not output.strip():
        return Said(Answer())
    try:
        answer = Answer.model_validate_json(output, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _failure(f"it printed no answer ({where or 'output'}: {first['msg']})", secrets)
    on = hook.settings.on
    if wrong := [name for name in sorted(answer.model_fields_set) if name not in ALLOWED[on]]:
        return _failure(f"it said `{wrong[0]}`, and {on} takes only {' or '.join(ALLOWED[on])}", secrets)
    words = {name: _text(value, secrets) for name, value in answer if isinstance(value, str)}
    return Said(answer.model_copy(update=words))


def _failure(how: str, secrets: Secrets) -> Said:
    return Said(Answer(), failed=_text(how, secrets))


def _text(text: str, secrets: Secrets) -> str:
    return head_and_tail(secrets.hide(plain(text)).strip(), MOST_TEXT)
