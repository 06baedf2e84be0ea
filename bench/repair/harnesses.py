"""The ways to get a task done with the same model, each as its users would start it."""

import http.client
import json
import re
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.peers import FOLDER
from bench.repair.events import Event, attempts_of, read_export
from bench.repair.model_server import MODEL, ModelServer, computed
from bench.repair.tasks import Task
from bench.repair.workspace import Ended, Place, run, test

ATTEMPTS = 12
CHECK = "python -m pytest -q"
FENCED = re.compile(r"```[\w.-]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
FIRST_WARM, STEP, WARMEST = 0.3, 0.15, 1.0
OUTPUT_TOKENS = 2_500
TOLD = 400
EXPORT_SECONDS = 120.0


class Setting(NamedTuple):
    """What a harness gets besides the task."""

    server: ModelServer
    handrail: Path
    seconds: float
    tokens: int = 0
    """For samples: how many they may take."""


class Outcome(NamedTuple):
    done: bool
    """The harness says that the task is done."""
    end: str
    """How it ended, in its own words."""
    attempts: dict[str, int] | None = None
    """Attempts and wasted ones; None where the harness does not tell."""
    log: str = ""
    """What a person can read to see what went wrong."""
    stopped: bool = False
    """The time limit ended it."""


def one_shot(task: Task, place: Place, setting: Setting) -> Outcome:
    """One question with all files; its answer is taken as it is."""
    began = time.monotonic()
    text = _ask(task, setting, number=1)
    if text is None:
        stopped = time.monotonic() - began > setting.seconds
        return Outcome(done=False, end="no file in the answer", stopped=stopped)
    (place.folder / task.module).write_text(text)
    return Outcome(done=True, end="answered")


def samples(task: Task, place: Place, setting: Setting) -> Outcome:
    """The same question again, warmer, until the tests pass or the tokens are spent; the best is kept."""
    began, seen, best, most, spent = time.monotonic(), {task.start}, task.start, -1, False
    for number in count(1):
        text = _ask(task, setting, number)
        if text is not None and text not in seen:
            seen.add(text)
            (place.folder / task.module).write_text(text)
            tested = test(place, "tests")
            if tested.right:
                return Outcome(done=True, end=f"sample {number} passes")
            if tested.passed > most:
                best, most = text, tested.passed
        spent = computed(setting.server.proxy.tokens()) >= setting.tokens
        if spent or time.monotonic() - began > setting.seconds:
            break
    (place.folder / task.module).write_text(best)
    return Outcome(done=False, end=f"none of {number} samples passes", stopped=not spent)


def _ask(task: Task, setting: Setting, number: int) -> str | None:
    """The module as the model would write it; None where it wrote none."""
    files = [f"{name}:\n```\n{text}```" for name, text in task.shown.items() if name != "pyproject.toml"]
    wanted = f"Answer with the whole new content of {task.module} in one code block, and nothing else."
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "\n\n".join([*files, task.text, wanted])}],
        "temperature": 0.0 if number == 1 else min(WARMEST, FIRST_WARM + STEP * (number - 1)),
        "max_tokens": OUTPUT_TOKENS,
        "seed": number,
    }
    found = FENCED.search(_complete(setting, body))
    return f"{found[1].rstrip()}\n" if found else None


def _complete(setting: Setting, body: dict[str, Any]) -> str:
    connection = http.client.HTTPConnection(urlsplit(setting.server.url).netloc, timeout=setting.seconds)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = json.loads(connection.getresponse().read())
        return str(answer["choices"][0]["message"]["content"]) if "choices" in answer else ""
    except TimeoutError:
        return ""
    finally:
        connection.close()


def run_check(task: Task, place: Place, setting: Setting) -> Outcome:
    """`handrail run --check`."""
    words = ["run", "--mode", "auto", "--json", "--check", CHECK, "--attempts", str(ATTEMPTS)]
    return _handrail(words, task, place, setting)


def build(task: Task, place: Place, setting: Setting) -> Outcome:
    """`handrail build`; the user takes an unverified proposal too, as those of the others always are."""
    return _handrail(["build", "--json", "--accept-unverified"], task, place, setting)


def _handrail(words: list[str], task: Task, place: Place, setting: Setting) -> Outcome:
    home = place.home / "handrail"
    home.mkdir(mode=0o700)
    environment = {"HANDRAIL_HOME": str(home), "HANDRAIL_LOCAL_MODEL": str(setting.server.file)}
    command = [str(setting.handrail), *words, "--model", f"embedded/{MODEL}", "--", task.text]
    lock = setting.server.announce(home)
    try:
        ended = run(command, place, setting.seconds, environment, walled=False)
        exported = exported_events(setting.handrail, place, environment)
    finally:
        lock.release()
    attempts = attempts_of(exported, task.module)
    log = "\n".join([ended.errors, ended.output, *map(json.dumps, exported)])
    why = [event["detail"] for event in exported if event["type"] in {"run_failed", "turn_finished"}]
    end = _end(ended, why[-1] if why else ended.errors)
    return Outcome(ended.status == 0, end, attempts, log, stopped=ended.status is None)


def _end(ended: Ended, words: str) -> str:
    """How a program ended, and its last words."""
    status = "stopped at the limit" if ended.status is None else f"status {ended.status}"
    return f"{status}: {' '.join(words.split())[-TOLD:]}"


def exported_events(handrail: Path, place: Place, environment: dict[str, str]) -> list[Event]:
    """The events of the first session, which did the task; none where there is no session."""
    listed = run([str(handrail), "sessions", "--json"], place, EXPORT_SECONDS, environment, walled=False)
    sessions = [json.loads(line) for line in listed.output.splitlines()]
    if not sessions:
        return []
    file = place.home / "session.jsonl"
    words = ["export", sessions[-1]["id"], str(file)]  # a proposal is accepted in one of its own
    ended = run([str(handrail), *words], place, EXPORT_SECONDS, environment, walled=False)
    if ended.status != 0:
        raise SystemExit(f"The session could not be exported: {ended.errors}")
    return read_export(file.read_text())


def aider(task: Task, place: Place, setting: Setting) -> Outcome:
    """aider with whole files, the module to be edited named for it, and the tests run after each edit."""
    environment = {
        "OPENAI_API_KEY": "none",
        "OPENAI_API_BASE": setting.server.url,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    about = place.home / "model.json"
    window = setting.server.running.context_window
    about.write_text(json.dumps({f"openai/{MODEL}": {"max_input_tokens": window, "max_tokens": window}}))
    quiet = [
        "--no-check-update",
        "--analytics-disable",
        "--no-show-release-notes",
        "--no-gitignore",
        "--no-pretty",
    ]
    plain = ["--no-show-model-warnings", "--yes-always", "--no-auto-commits", "--no-suggest-shell-commands"]
    way = ["--edit-format", "whole", "--auto-test", "--test-cmd", CHECK, "--model-metadata-file", str(about)]
    others = [name for name in task.shown if name not in {task.module, "pyproject.toml"}]
    read = [word for name in others for word in ("--read", name)]
    words = ["--model", f"openai/{MODEL}", *quiet, *plain, *way, *read, "--message", task.text, task.module]
    ended = run([str(FOLDER / "aider/bin/aider"), *words], place, setting.seconds, environment)
    # It ends with status 0 in any case, and does not say that it is done; so it is taken at its kindest.
    gave_up = "reflections allowed, stopping" in ended.output
    edited = (place.folder / task.module).read_text() != task.start
    end = "gave up" if gave_up else "edited" if edited else "no edit"
    if ended.status != 0:
        end = _end(ended, ended.errors or ended.output)
    done, log = ended.status == 0 and edited and not gave_up, ended.output + ended.errors
    return Outcome(done, end, log=log, stopped=ended.status is None)


def mini(task: Task, place: Place, setting: Setting) -> Outcome:
    """mini-swe-agent, answering in text: the model writes no tool calls of the server's form."""
    environment = {
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_SILENT_STARTUP": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": setting.server.url,
        "OPENAI_API_BASE": setting.server.url,
    }
    kept = place.home / "trajectory.json"
    way = ["--yolo", "--exit-immediately", "--output", str(kept)]
    way += ["--config", "mini_textbased", "--model-class", "litellm_textbased"]
    words = ["--model", f"openai/{MODEL}", *way, "--task", f"{task.text} The tests run with `{CHECK}`."]
    ended = run([str(FOLDER / "mini/bin/mini"), *words], place, setting.seconds, environment)
    status = json.loads(kept.read_text())["info"].get("exit_status", "") if kept.exists() else ""
    end = status or _end(ended, ended.errors or ended.output)
    log = ended.output + ended.errors
    return Outcome(status == "Submitted", end, log=log, stopped=ended.status is None)


HARNESSES: dict[str, Callable[[Task, Place, Setting], Outcome]] = {
    "one-shot": one_shot,
    "build": build,
    "samples": samples,
    "run-check": run_check,
    "aider": aider,
    "mini": mini,
}
"""In the order in which they run: samples get the tokens that build took."""
