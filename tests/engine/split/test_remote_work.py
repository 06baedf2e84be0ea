"""What comes back from a worker is read like any answer, and what goes there has no known secret."""

import json

from handrail.engine.durable.jobs import GivenExport, GivenFile, Job, JobResult, ModelExchange, NewFile
from handrail.engine.split.remote_work import without_secrets
from handrail.engine.split.subtask_work import read_exchange
from handrail.models.wire.http_client import idempotency_header
from handrail.protocol.subtask import Export, Subtask
from handrail.protocol.values import to_json

JOB = Job(
    "a/0/1",
    Subtask("a", "Use hunter2-hunter2.", ("a.py",), constraints=("Never print hunter2-hunter2.",)),
    "Everything about hunter2-hunter2",
    (GivenFile("a.py", "KEY = 'hunter2-hunter2'\n", "0" * 64), GivenFile("b.py", None, "")),
    (GivenExport("z", "hunter2-hunter2", (Export("hunter2-hunter2", "name", "is hunter2-hunter2"),)),),
    refused="It has hunter2-hunter2.",
)


def came_back(path: str) -> JobResult:
    files = [{"path": path, "text": "KEY = 'new'\n"}]
    said = ModelExchange("mine/m", "main", b"asked", b"raw", json.dumps({"files": files}))
    claimed = (NewFile("elsewhere.py", "print('from a worker')\n"),)
    return JobResult("a/0/1", files=claimed, summary="trust me", exchanges=(said,), worker="w")


def test_only_the_answer_counts_and_not_what_the_worker_says_of_it() -> None:
    found = read_exchange(JOB, came_back("a.py"))
    assert (found.files, found.summary, found.worker) == ((NewFile("a.py", "KEY = 'new'\n"),), "", "w")
    assert not found.problem


def test_only_the_problem_counts_where_there_is_no_answer() -> None:
    claimed = JobResult("b/0/1", problem="no", over_budget=True, summary="trust me", worker="w")
    assert read_exchange(JOB, claimed) == JobResult("a/0/1", problem="no", worker="w")


def test_answer_of_a_worker_that_writes_elsewhere_is_refused() -> None:
    found = read_exchange(JOB, came_back("../.bashrc"))
    assert found.files == ()
    assert "may not write" in found.problem


def test_no_text_of_a_job_leaves_with_a_secret() -> None:
    sent = without_secrets(JOB, lambda text: text.replace("hunter2-hunter2", "[secret]"))
    assert "hunter2" not in to_json(sent)
    assert to_json(sent).count("[secret]") == to_json(JOB).count("hunter2-hunter2") == 8
    assert (sent.key, sent.subtask.files, sent.files[0].sha256) == (JOB.key, ("a.py",), "0" * 64)


def test_idempotency_key_is_that_of_the_work_and_its_bytes() -> None:
    [first] = idempotency_header("s_1/a/0/1", b"body").values()
    assert idempotency_header("s_1/a/0/1", b"body") == {"idempotency-key": first}
    assert idempotency_header("s_1/a/0/2", b"body") != {"idempotency-key": first}
    assert idempotency_header("s_1/a/0/1", b"other") != {"idempotency-key": first}
    assert idempotency_header("", b"body") == {}
