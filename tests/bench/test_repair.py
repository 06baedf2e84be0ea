"""The tasks of `bench.repair` are sound, and its harness scores, counts and resumes."""

import http.client
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.repair import results
from bench.repair.__main__ import main
from bench.repair.events import attempts_of
from bench.repair.harnesses import Setting, exported_events, samples
from bench.repair.model_server import ModelServer, Proxy
from bench.repair.tasks import all_tasks
from bench.repair.workspace import Place, Score, run, score
from handrail.models.embedded.model_files import QWEN
from handrail.models.embedded.server_files import RunningServer
from handrail.models.embedded.server_process import ServerProcess

TASKS = {task.name: task for task in all_tasks()}
ROOT = Path(__file__).parents[2]
Judged = dict[str, dict[str, dict[str, int]]]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """Outcomes of visible and hidden tests: of each task as it starts, and of each project as it is stored.

    A task with several changes starts once with each of them alone.
    """
    folder = tmp_path
    for task in TASKS.values():
        starts = [task._replace(changes=(change,)) for change in task.changes] or [task]
        for number, start in enumerate(starts):
            start.write_start(folder / f"{task.name}:{number}")
            start.restore_tests(folder / f"{task.name}:{number}")
        task.write_start(folder / task.project.name)
        task.restore_tests(folder / task.project.name)
        (folder / task.project.name / task.module).write_text(task.solution)
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.repair_outcomes", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: Judged = json.loads(done.stdout)
    return found


def test_every_task_fails_at_the_start_and_passes_when_solved(judged: Judged) -> None:
    for task, folder in product(TASKS.values(), ("tests", "hidden")):
        for name in (f"{task.name}:{number}" for number in range(max(1, len(task.changes)))):
            assert judged[name][folder].get("failed"), f"{name}: no test in {folder} fails at the start"
        solved = judged[task.project.name][folder]
        assert solved.keys() == {"passed"}, f"{task.name}: {folder} of the solution: {solved}"


def test_there_are_enough_tasks_of_each_kind() -> None:
    kinds = [task.kind for task in TASKS.values()]
    assert kinds.count("bug") >= 20
    assert kinds.count("complete") >= 12
    assert kinds.count("write") >= 10


def test_an_agent_is_given_neither_hidden_tests_nor_solution() -> None:
    for task in TASKS.values():
        assert not [
            name
            for name in task.shown
            if "hidden" in name or name.endswith(".toml") != (name == "pyproject.toml")
        ]
        assert task.solution not in task.shown.values()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "home").mkdir()
    TASKS["votes-write"].write_start(tmp_path / "votes")
    return Place(tmp_path / "home", tmp_path / "votes")


def test_tests_that_an_agent_weakened_are_restored_before_scoring(place: Place) -> None:
    (place.folder / "tests" / "test_votes.py").write_text("def test_nothing():\n    pass\n")
    (place.folder / "conftest.py").write_text("collect_ignore_glob = ['*']\n")
    assert score(TASKS["votes-write"], place) == Score(visible=False, hidden=False, tampered=True)


def test_the_reference_solution_scores_as_solved(place: Place) -> None:
    (place.folder / "votes.py").write_text(TASKS["votes-write"].solution)
    assert score(TASKS["votes-write"], place) == Score(visible=True, hidden=True, tampered=False)


def test_code_that_answers_only_the_visible_tests_is_not_solved(place: Place) -> None:
    (place.folder / "votes.py").write_text(
        "def invalid(ballots):\n    return 2\n"
        "def points(ballots):\n    return {'ann': 4, 'bob': 5, 'cid': 2}\n"
        "def winners(ballots):\n    return ['bob'] if len(ballots) == 4 else ['a', 'b']\n"
    )
    assert score(TASKS["votes-write"], place) == Score(visible=True, hidden=False, tampered=False)


def test_code_that_ends_the_test_run_early_has_failed(place: Place) -> None:
    (place.folder / "votes.py").write_text("import os\nos._exit(0)\n")
    assert score(TASKS["votes-write"], place) == Score(visible=False, hidden=False, tampered=False)


def test_a_walled_program_writes_only_beside_the_workspace_and_sees_no_solution(place: Place) -> None:
    outside = Path(ROOT, "bench", "written-by-an-agent")
    tried = f"touch {outside}; touch made; ls {ROOT}/bench/repair/projects"
    ended = run(["sh", "-c", tried], place, 60)
    assert not outside.exists()
    assert (place.folder / "made").exists()
    assert ended.output == ""


def test_a_program_is_stopped_at_its_limit(place: Place) -> None:
    assert run(["sh", "-c", "echo begun; exec sleep 600"], place, 1).status is None


@pytest.mark.parametrize("walled", [True, False])
def test_a_program_ends_with_the_bench_that_is_killed(tmp_path: Path, walled: bool) -> None:
    home, fifo = tmp_path / "home", tmp_path / "fifo"
    home.mkdir()
    os.mkfifo(fifo)
    begin = ["sh", "-c", f"exec 3>{fifo}; echo begun >&3; exec sleep 600"]
    place = f"Place(Path({str(home)!r}), Path({str(home)!r}))"
    code = f"from bench.repair.workspace import *; run({begin!r}, {place}, 600, walled={walled})"
    bench = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    with fifo.open() as lines:
        assert lines.readline() == "begun\n"
        bench.kill()
        bench.wait()
        closed, _, _ = select.select([lines], [], [], 60)
    assert closed


PIECES: list[dict[str, Any]] = [
    {"prompt_progress": {"total": 50, "cache": 20, "processed": 50}},
    {"choices": [{"delta": {"content": "a"}}]},
    {"choices": [{"delta": {"content": "b"}}]},
    {"choices": [{"delta": {}}], "timings": {"prompt_n": 30, "cache_n": 20, "predicted_n": 7}},
]


class Upstream(BaseHTTPRequestHandler):
    """Answers as llama.cpp does: streamed, whole, or streamed and then silent."""

    hung_up = threading.Event()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Authorization"] == "Bearer secret"
        self.send_response(200)
        stream = asked.get("stream", False)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.end_headers()
        if not stream:
            said = {"choices": [{"message": {"content": "ab"}}], "timings": PIECES[-1]["timings"]}
            self.wfile.write(json.dumps(said).encode())
            return
        for piece in PIECES[:-1] if asked.get("silent") else PIECES:
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
        self.wfile.flush()
        if asked.get("silent"):
            self.connection.settimeout(60)
            assert self.connection.recv(1) == b""
            self.hung_up.set()

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 the library's own name
        pass


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    upstream = HTTPServer(("127.0.0.1", 0), Upstream)
    serving = threading.Thread(target=upstream.serve_forever)
    serving.start()
    proxy = Proxy(f"http://127.0.0.1:{upstream.server_address[1]}", "secret")
    yield proxy
    proxy.begin()
    proxy.close()
    upstream.shutdown()
    upstream.server_close()
    serving.join()


def ask(proxy: Proxy, **body: Any) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    return connection.getresponse()


@pytest.mark.parametrize("stream", [True, False])
def test_tokens_are_counted_alike_however_the_answer_comes(proxy: Proxy, stream: bool) -> None:
    answer = ask(proxy, stream=stream).read()
    assert proxy.tokens() == {"prompt": 50, "fresh": 30, "out": 7}
    assert [each.text for each in proxy.answers] == ["ab"]
    assert b'"timings"' in answer


def test_an_answer_that_was_not_awaited_is_counted_by_its_pieces_and_hung_up_on(proxy: Proxy) -> None:
    response = ask(proxy, stream=True, silent=True)
    while b'"b"' not in response.readline():
        pass
    counted = proxy.tokens()
    proxy.begin()
    assert counted == {"prompt": 50, "fresh": 30, "out": 2}
    assert Upstream.hung_up.wait(60)
    assert proxy.tokens() == {"prompt": 0, "fresh": 0, "out": 0}


@pytest.mark.parametrize(("seconds", "said"), [(60.0, "none of 3"), (0.000001, "none of 1")])
def test_samples_that_the_limit_ends_before_their_tokens_are_spent_say_so(
    proxy: Proxy, place: Place, seconds: float, said: str
) -> None:
    running = RunningServer(os.getpid(), proxy.url, "secret", 4096, 1, 0)
    process = ServerProcess(QWEN, Path("model.gguf"), place.home)
    setting = Setting(ModelServer(Path("model.gguf"), process, running, proxy), Path(), seconds, tokens=100)
    outcome = samples(TASKS["votes-write"], place, setting)
    assert said in outcome.end
    assert outcome.stopped == (seconds < 1)


def test_samples_without_a_build_to_compare_with_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "repair.jsonl"
    monkeypatch.setattr(sys, "argv", ["repair", "--harness", "samples", "--results", str(file)])
    with pytest.raises(SystemExit, match="use --harness build,samples"):
        main()
    assert not file.exists()


def test_events_of_a_session_are_read_from_its_export(place: Place) -> None:
    handrail = Path(sys.executable).with_name("handrail")
    environment = {"HANDRAIL_HOME": str(place.home / "handrail")}
    words = [str(handrail), "run", "--model", "scripted/missing", "hello"]
    assert run(words, place, 60, environment, walled=False).status == 1
    types = [event["type"] for event in exported_events(handrail, place, environment)]
    assert types[0] == "session_started"
    assert "turn_finished" in types


def changed(sha256: str, path: str = "a.py") -> dict[str, Any]:
    return {"type": "change_prepared", "by": "agent", "files": [{"path": path, "new_sha256": sha256}]}


def test_wasted_attempts_are_told_by_what_was_written() -> None:
    begin = {"type": "attempt_started"}
    rollback = {"type": "change_prepared", "by": "rollback", "files": [{"path": "a.py", "new_sha256": "0"}]}
    tried = [
        begin,
        changed("1"),
        rollback,
        begin,
        begin,
        changed("1"),
        rollback,
        begin,
        changed("1", "tests/t.py"),
    ]
    found = attempts_of([*tried, begin, changed("2")], "a.py")
    assert found == {"attempts": 5, "tried": 2, "unchanged": 1, "repeated": 1, "closed": 1}
    assert attempts_of([changed("1")], "a.py") is None


def test_candidates_tell_themselves_how_they_ended() -> None:
    ends = [("a.py", "failed"), ("a.py", "repeated"), ("tests/t.py", "failed"), ("a.py", "passed")]
    events = [{"type": "candidate_tried", "path": path, "result": result} for path, result in ends]
    events.append({"type": "candidate_tried", "path": "a.py", "result": "failed", "asked": "mutation"})
    assert attempts_of(events, "a.py") == {
        "attempts": 4,
        "failed": 1,
        "repeated": 1,
        "closed": 1,
        "passed": 1,
    }


def record(harness: str, task: str, **other: Any) -> results.Record:
    usual = {"kind": "bug", "done": True, "hidden": True, "visible": True, "seconds": 2.0, "attempts": None}
    usual |= {"version": "abc1234", "limit": 600.0, "stopped": False}
    return {
        "harness": harness,
        "task": task,
        "tokens": {"prompt": 10, "fresh": 8, "out": 5},
        **usual,
        **other,
    }


def test_a_result_that_a_kill_cut_short_is_run_again_and_later_ones_stay(tmp_path: Path) -> None:
    file = tmp_path / "results" / "repair.jsonl"
    results.append(file, record("build", "a"))
    with file.open("a") as stream:
        stream.write('{"harness": "build", "task": "b", "hid')
    results.append(file, record("build", "c", hidden=False))
    results.append(file, record("build", "c"))
    found = results.load(file)
    assert set(found) == {("build", "a"), ("build", "c")}
    assert found["build", "c"]["hidden"]


def test_the_table_tells_false_completes_and_wasted_attempts_apart() -> None:
    wasted = {"attempts": 4, "unchanged": 1, "tried": 3}
    rows = results.table(
        [
            record("build", "a", attempts=wasted),
            record("build", "b", hidden=False),
            record("build", "c", hidden=False, visible=False),
            record("build", "d", hidden=False, visible=False, done=False),
        ]
    ).splitlines()
    cells = dict(zip(*([cell.strip() for cell in rows[at].split("|")[1:-1]] for at in (0, 2)), strict=True))
    assert cells["solved"] == "1 (25%)"
    assert cells["95 %"] == "5% to 70%"
    assert (cells["said done"], cells["of it hidden tests fail"], cells["of it visible tests fail"]) == (
        "3",
        "2",
        "1",
    )
    assert cells["wasted attempts"] == "1 of 4 (unchanged 1)"


def test_the_table_tells_which_versions_and_limits_it_mixes_and_what_the_limit_ended() -> None:
    other = record("build", "b", version="def5678", limit=150.0, stopped=True)
    told = results.table([record("build", "a"), other, record("samples", "a")])
    assert told.endswith("Results by version: abc1234 (2), def5678 (1); by limit: 600 s (2), 150 s (1).")
    assert [row.split("|")[-3].strip() for row in told.splitlines()[2:4]] == ["1", "0"]


@pytest.mark.parametrize(
    ("solved", "total", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (20, 20, 0.8389, 1.0)]
)
def test_intervals_are_wilsons(solved: int, total: int, low: float, high: float) -> None:
    assert results.wilson(solved, total) == pytest.approx((low, high), abs=5e-4)
