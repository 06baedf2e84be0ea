import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.tools.commands.output import CapturedOutput
from handrail.tools.process import run_process
from handrail.tools.secrets import find_secrets, without_secrets
from tests.processes import gone, lasting, running
from tests.tools.calls import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench("auto")


async def test_output_of_both_kinds_comes_back_with_the_exit_status(bench: Bench) -> None:
    finished = await bench.call("run", command="echo out; echo err >&2; exit 3")
    assert finished.status == "failed"
    assert finished.summary.startswith("exit 3 in ")
    assert finished.content.split("\n")[1:] == ["out", "err"]
    assert finished.shown == "out\nerr"


async def test_a_command_runs_in_the_workspace_without_input(bench: Bench) -> None:
    finished = await bench.call("run", command="pwd; cat; echo done")
    assert finished.content.split("\n")[1:] == [str(bench.root), "done"]


async def test_a_command_that_ends_by_a_signal_says_which(bench: Bench) -> None:
    assert (await bench.call("run", command="kill -9 $$")).summary.startswith("ended by signal 9")


@pytest.mark.promise("TOOL-6")
async def test_a_time_limit_stops_the_command_and_its_children(bench: Bench) -> None:
    child, stubborn = lasting(), lasting()
    command = f"sleep {child} & (trap '' TERM; sleep {stubborn}); wait"
    finished = await bench.call("run", command=command, timeout=0.5)
    assert finished.error is not None
    assert finished.error.reason == "timeout"
    assert await gone(child)
    assert await gone(stubborn)


async def test_background_children_neither_hang_the_call_nor_outlive_it(bench: Bench) -> None:
    child = lasting()
    with anyio.fail_after(50):
        finished = await bench.call("run", command=f"sleep {child} & echo started", timeout=60)
    assert finished.status == "ok"
    assert "started" in finished.content
    assert "background were stopped" in finished.content
    assert await gone(child)


async def test_a_child_that_left_the_group_does_not_hang_the_call(bench: Bench) -> None:
    child = lasting()
    with anyio.fail_after(50):
        finished = await bench.call("run", command=f"setsid sleep {child} & echo started", timeout=60)
    assert finished.status == "ok"
    for number in running(child):
        os.kill(number, 9)


@pytest.mark.promise("TOOL-7")
async def test_cancelling_stops_the_whole_group(bench: Bench) -> None:
    child = lasting()
    arguments = {"command": f"sleep {child} & echo begun; wait"}
    call = bench.wanted(ToolCall(id=new_id("call"), name="run", arguments=arguments))
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            while "begun" not in bench.session.live.text(call.id, "output") or not running(child):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert await gone(child)


async def test_a_command_that_closes_its_output_is_waited_for(bench: Bench) -> None:
    await bench.call("run", command="exec >&- 2>&-; sleep 0.3; touch done")
    assert (bench.root / "done").exists()


async def test_colours_and_control_characters_do_not_reach_the_screen(bench: Bench) -> None:
    finished = await bench.call("run", command=r"printf '\033[31mred\033[0m\033]0;title\007\r\nx\a\n'")
    assert finished.shown == "red\nx"


async def test_bytes_that_are_no_text_do_not_break_the_log(bench: Bench) -> None:
    finished = await bench.call("run", command=r"printf '\377\376\000ok'")
    assert finished.content.endswith("ok")


@pytest.mark.promise("TOOL-8")
async def test_secrets_of_the_environment_do_not_reach_commands(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "MY_SECRET_X", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"]
    names += ["GOOGLE_APPLICATION_CREDENTIALS", "SIGNING_KEY", "DB_PASS", "SMTP_PASS", "PASS", "DBPASS"]
    names += ["MYSQL_PWD", "PGPASSWORD", "GPG_PASSPHRASE", "DB_PASS_FILE", "DB_PW", "GH_TOKEN", "NPM_TOKEN"]
    names += ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "NPM_CONFIG__AUTH", "npm_config__authToken", "JWT"]
    names += ["AZURE_STORAGE_CONNECTION_STRING", "SLACK_WEBHOOK_URL", "SENTRY_DSN", "DOCKER_AUTH_CONFIG"]
    names += ["OP_SESSION_me", "BW_SESSION", "STRIPE_SK", "BASIC_AUTH", "PGPASSFILE", "GITHUB_PAT", "KEY"]
    for name in names:
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("DATABASE_URL", "postgres://me:hunter2@localhost/x")
    monkeypatch.setenv("REMOTE", "https://hunter2hunter2hunter2@example.org/a.git")
    for number, start in enumerate(("ghp_", "sk-ant-", "AKIA", "xoxb-", "glpat-", "eyJhbGciOi.")):
        monkeypatch.setenv(f"PLAIN_{number}", f"{start}hunter2hunter2hunter2")
    monkeypatch.setenv("KEYBOARD", "dvorak")
    finished = await bench.call("run", command="env")
    assert "hunter2" not in finished.content
    assert "KEYBOARD=dvorak" in finished.content


@pytest.mark.promise("TOOL-8")
async def test_the_key_of_a_connection_does_not_reach_commands_whatever_its_name(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORP_LLM", "hunter2")
    monkeypatch.setenv("OTHER_LLM", "seen")
    bench = make_bench(secrets=find_secrets(os.environ, ["CORP_LLM"]))
    finished = await bench.call("run", command='echo "[$CORP_LLM] [$OTHER_LLM]"')
    assert "[] [seen]" in finished.content


@pytest.mark.promise("TOOL-14")
async def test_a_secret_in_the_output_is_neither_streamed_nor_kept_however_it_comes(
    make_bench: Callable[..., Bench],
) -> None:
    """In two pieces while it streams, and across the place where the output is cut for the model."""
    secrets = find_secrets({"MY_TOKEN": "0123456789abcdef"})
    bench = make_bench("auto", secrets=secrets)
    (bench.root / "long").write_text("x" * 1495 + "0123456789abcdef" + "y" * 5000)
    command = "printf 'a 01234567'; sleep 0.1; echo '89abcdef b'; cat long; touch done; sleep 60"
    call = bench.wanted(ToolCall(id=new_id("call"), name="run", arguments={"command": command}))
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            while "yyy" not in (streamed := bench.session.live.text(call.id, "output")):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    assert streamed.startswith("a [secret MY_TOKEN] b\nx")
    assert "0123" not in streamed
    finished = await bench.call("run", command="cat long")
    kept = bench.session.log.blob(finished.output) or b""
    assert b"x[secret MY_TOKEN]y" in kept
    for text in (finished.content, finished.shown, kept.decode()):
        assert "0123" not in text


def test_a_longer_secret_is_hidden_before_one_that_is_part_of_it() -> None:
    secrets = find_secrets(
        {"A_TOKEN": "abcdefg1", "B_TOKEN": "abcdefg1ij", "C_TOKEN": "short", "D": "dddddddd"}
    )
    assert (
        secrets.hide("abcdefg1ij abcdefg1 short dddddddd")
        == "[secret B_TOKEN] [secret A_TOKEN] short dddddddd"
    )
    assert "abcdefg1" not in repr(secrets)


def test_words_and_settings_that_stand_in_any_text_are_not_hidden() -> None:
    common = {
        "DB_PASSWORD": "postgres",
        "ADMIN_PASSWORD": "changeme",
        "AUTH": "localhost",
        "TOKEN": "12345678",
        "API_KEY": "PLACEHOLDER",
        "APP_SECRET": "http://localhost:8080/login",
        "COOKIE_DOMAIN": "shop.example.org",
        "TOKEN_URL": "https://login.example.org/token",
        "JWT_ALGORITHM": "RS256-with-more",
        "SECRET_MANAGER": "vault-of-the-firm",
    }
    assert find_secrets(common).known == ()
    telling = {
        "A_PASSWORD": "pX3-kq9!",
        "B_PASSWORD": "xKqPzRtW",
        "C_SECRET": "correcthorsebattery",
        "SLACK_WEBHOOK_URL": "https://hooks.example.org/T0/B0/x",
        "TOKEN_FILE": "ghp_0123456789abcdefghij",
        "AWS_ACCESS_KEY_ID": "an-id-of-four-parts",
    }
    assert {secret.name for secret in find_secrets(telling).known} == set(telling)
    assert find_secrets({"CORP": "password"}, ["CORP"]).known  # the key of a connection, whatever it is


def test_what_is_no_secret_stays_in_the_environment() -> None:
    kept = {"PATH": "/bin", "HOME": "/home/me", "LANG": "C", "MONKEY": "x", "URL": "http://host/a"}
    kept |= {"PWD": "/a", "OLDPWD": "/b", "SSH_ASKPASS": "/bin/ask", "COMPASS": "north", "BYPASS": "no"}
    kept |= {"MAX_TOKENS": "100", "TOKENIZERS_PARALLELISM": "false", "GIT_AUTHOR_NAME": "Ada"}
    kept |= {"DB_URL": "postgres://me@localhost/x", "XDG_SESSION_ID": "3", "PATTERN": "*.py"}
    assert without_secrets(kept).items() >= kept.items()


async def test_output_streams_while_the_command_runs_up_to_a_limit(bench: Bench) -> None:
    call = bench.wanted(
        ToolCall(id=new_id("call"), name="run", arguments={"command": "seq 1 100000; touch done; sleep 60"})
    )
    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.gate.run, call, bench.turn_id)
            while not (bench.root / "done").exists():
                await anyio.sleep(0.01)
            streamed = bench.session.live.text(call.id, "output")
            tasks.cancel_scope.cancel()
    assert streamed.startswith("1\n2\n3\n")
    assert len(streamed) < 70_000


BIG = """
import asyncio, resource, sys
from pathlib import Path
from tests.tools.calls import open_bench

async def main():
    bench = open_bench(Path(sys.argv[1]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = "head -c 10000000000 /dev/zero | tr '\\\\0' x; echo end"
    finished = await bench.call("run", command=command, timeout=120)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = (bench.session.log.folder / "log.db").stat().st_size
    assert finished.error.reason == "too_large", finished
    assert "stopped at 256 MB of output" in finished.summary
    blob = bench.session.log.blob(finished.output)
    assert b"bytes were not kept" in blob and len(blob) < 17_000_000, len(blob)
    bench.close()
    print(after - before, size)

asyncio.run(main())
"""


@pytest.mark.promise("TOOL-9")
def test_ten_gigabytes_of_output_fill_neither_memory_nor_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": "src:."},
        capture_output=True,
        check=False,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    grown, size = map(int, done.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert grown * unit < 120_000_000
    assert size < 20_000_000


async def test_a_reader_that_had_enough_stops_the_program(tmp_path: Path) -> None:
    chunks: list[bytes] = []

    def take(chunk: bytes) -> bool:
        chunks.append(chunk)
        return False

    with anyio.fail_after(50):
        done = await run_process(["yes"], folder=tmp_path, environment=os.environ, timeout=60, on_output=take)
    assert len(chunks) == 1
    assert not done.timed_out


async def test_no_descriptor_or_process_is_left(bench: Bench) -> None:
    await bench.tools.run_tool._sandbox.warm_up()
    await bench.call("run", command="true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await bench.call("run", command="echo x", timeout=5)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("chunks", "ends"),
    [
        (["ab", "cd"], "abcd"),
        (["abcdefgh", "ijklmnop"], "abcd\n[… 8 bytes left out …]\nmnop"),
        (["abcdefghijkl", "mnopqrstuvwxyz"], "abcd\n[… 18 bytes left out …]\nwxyz"),
        (["abcdefghij", "k"], "abcd\n[… 3 bytes left out …]\nhijk"),
    ],
)
def test_start_and_end_of_the_output_are_kept(chunks: list[str], ends: str) -> None:
    output = CapturedOutput(head_size=10, tail_size=6)
    for chunk in chunks:
        output.add(chunk.encode())
    assert output.head_and_tail(8) == ends
    assert len(output.whole().replace("[… 10 bytes were not kept …]".encode(), b"")) <= 18
