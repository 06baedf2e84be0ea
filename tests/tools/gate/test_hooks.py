"""Hooks around calls: real programs that deny, change, fail or tell, before a gate with a real session."""

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.config.settings import Hook, HookSettings
from handrail.protocol.events import HookSpoke, ToolFinished, ToolStarted
from handrail.protocol.ids import new_id
from handrail.protocol.values import ToolCall
from handrail.sessions.transcript import ToolResultEntry
from handrail.tools.gate.hooks import MAX_OUTPUT
from handrail.tools.secrets import find_secrets
from tests.processes import gone, lasting
from tests.tools.calls import Bench
from tests.tools.hook_programs import hook, program

MakeBench = Callable[..., Bench]
pytestmark = pytest.mark.anyio


def spoken(bench: Bench) -> list[HookSpoke]:
    return [event for event in bench.events() if isinstance(event, HookSpoke)]


def reason(finished: ToolFinished) -> str:
    assert finished.error is not None
    assert (finished.status, json.loads(finished.content)["reason"]) == ("refused", finished.error.reason)
    return str(finished.error.reason)


# Denying


@pytest.mark.promise("HOOK-1")
async def test_a_hook_denies_a_call_and_the_model_is_told_why(make_bench: MakeBench, tmp_path: Path) -> None:
    body = 'if "secret" in asked["arguments"]["text"]: say(deny="No secrets in files.")'
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body, match=("write",))])
    denied = await bench.call("write", path="a.txt", text="secret\n")
    assert reason(denied) == "hook_denied"
    assert "hook.py) does not allow this: No secrets in files. " in json.loads(denied.content)["message"]
    assert not (bench.root / "a.txt").exists()
    assert not [event for event in bench.events() if isinstance(event, ToolStarted)]
    (spoke,) = spoken(bench)
    assert (spoke.on, spoke.did, spoke.text, spoke.tool) == (
        "before_tool",
        "denied",
        "No secrets in files.",
        "write",
    )
    assert (await bench.call("write", path="a.txt", text="fine\n")).status == "ok"
    assert len(spoken(bench)) == 1


@pytest.mark.promise("HOOK-1")
@pytest.mark.parametrize(
    ("body", "how"),
    [
        ('raise SystemError("broken inside")', "status 1: .*broken inside"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ('print("all good")', "printed an invalid answer"),
        ("print([1])", "printed an invalid answer"),
        ("say(deny=1)", "deny: should be a valid string"),
        ("say(allow=True)", "allow: is not known"),
        ('say(tell="x")', "said `tell`, but before_tool takes only deny or arguments"),
        ('sys.stdout.buffer.write(b"\\xff\\xfe{}")', "printed an invalid answer"),
        (f'sys.stdout.write("x" * {MAX_OUTPUT + 1})', "printed more than 4,000,000 bytes"),
        ('print("{}" * 2)', "printed an invalid answer"),
        ('print(\'{"arguments": {"path": "a.txt", "text": NaN}}\')', "printed an invalid answer"),
        ("print('{\"arguments\": ' + '{\"a\": ' * 300 + '1' + '}' * 301)", "cannot be stored"),
        ('say(deny="")', "no reason given"),
    ],
)
async def test_a_hook_that_crashes_or_cannot_be_understood_denies(
    make_bench: MakeBench, tmp_path: Path, body: str, how: str
) -> None:
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body)])
    denied = await bench.call("write", path="a.txt", text="one\n")
    assert reason(denied) == "hook_denied"
    (spoke,) = spoken(bench)
    assert re.search(how, spoke.text, re.DOTALL), spoke.text
    assert not (bench.root / "a.txt").exists()


@pytest.mark.promise("HOOK-1")
async def test_a_hook_that_takes_too_long_denies_and_is_stopped(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    word = lasting()
    slow = hook(tmp_path, "before_tool", run=("sleep", word), seconds=0.2)
    bench = make_bench(hooks=[slow])
    assert reason(await bench.call("list")) == "hook_denied"
    assert spoken(bench)[0].text == "it took longer than 0.2 s"
    assert await gone(word)


@pytest.mark.parametrize("word", ["no-such-program", "./nothing-here", "/dev/null"])
async def test_a_hook_that_is_not_there_denies(make_bench: MakeBench, tmp_path: Path, word: str) -> None:
    bench = make_bench(hooks=[hook(tmp_path, "before_tool", run=(word,))])
    assert reason(await bench.call("list")) == "hook_denied"
    assert spoken(bench)[0].did == "failed"


@pytest.mark.promise("HOOK-7")
@pytest.mark.parametrize("apart", [False, True])
async def test_a_hook_leaves_no_process_behind_and_its_answer_counts(
    make_bench: MakeBench, tmp_path: Path, apart: bool
) -> None:
    word = lasting()
    start = f'subprocess.Popen(["sleep", "{word}"], start_new_session={apart})'
    body = f'import subprocess\n{start}\nsay(deny="not now")'
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body)])
    assert reason(await bench.call("list")) == "hook_denied"
    assert (spoken(bench)[0].did, spoken(bench)[0].text) == ("denied", "not now")
    assert await gone(word)


@pytest.mark.promise("HOOK-7")
async def test_a_hook_gets_no_secrets_and_says_none(
    make_bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k-123456789")
    monkeypatch.setenv("PATH", f"{tmp_path / 'work' / '.venv' / 'bin'}:{os.environ['PATH']}")
    body = 'say(deny=str([sorted(os.environ), "k-123456789", os.environ["PATH"]]))'
    secrets = find_secrets(os.environ)
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body)], secrets=secrets)
    await bench.call("list")
    (spoke,) = spoken(bench)
    assert "SHOP_API_KEY" not in spoke.text.replace("[secret SHOP_API_KEY]", "")
    assert "k-123456789" not in spoke.text
    assert "HANDRAIL_WORKSPACE" in spoke.text
    assert str(tmp_path) not in spoke.text


async def test_what_a_hook_does_not_read_or_says_on_the_side_holds_nobody_up(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "deaf.py").write_text('import sys\nsys.stderr.write("noise " * 200_000)\n')
    bench = make_bench(hooks=[hook(folder, "before_tool", run=(sys.executable, "deaf.py"))])
    assert (await bench.call("write", path="a.txt", text="x\n" * 200_000)).status == "ok"
    assert spoken(bench) == []


async def test_a_hook_is_asked_only_about_the_tools_it_names(make_bench: MakeBench, tmp_path: Path) -> None:
    bench = make_bench(
        hooks=[hook(tmp_path / "mine", "before_tool", 'say(deny="no")', match=("run", "write"))]
    )
    assert (await bench.call("list")).status == "ok"
    assert reason(await bench.call("write", path="a", text="x")) == "hook_denied"


async def test_a_hook_is_told_what_it_is_about(make_bench: MakeBench, tmp_path: Path) -> None:
    body = 'open("asked.json", "w").write(json.dumps(asked | {"cwd": os.getcwd()}))'
    bench = make_bench("edit", hooks=[hook(tmp_path / "mine", "before_tool", body)])
    call = ToolCall(id="call_7", name="write", arguments={"path": "a.txt", "text": "ü\n"})
    await bench.run(call)
    assert json.loads((tmp_path / "mine" / "asked.json").read_text()) == {
        "on": "before_tool",
        "session": bench.session.id,
        "turn": "t_1",
        "workspace": str(bench.root),
        "mode": "edit",
        "call": "call_7",
        "tool": "write",
        "arguments": {"path": "a.txt", "text": "ü\n"},
        "cwd": str(tmp_path / "mine"),
    }


# The order


@pytest.mark.promise("HOOK-3")
async def test_rules_come_before_hooks_and_hooks_before_the_user(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    body = 'open("asked", "a").write("x")\nsay(deny="no")'
    bench = make_bench("ask", hooks=[hook(tmp_path / "mine", "before_tool", body)])
    assert reason(await bench.call("write", path="../out.txt", text="x")) == "outside_workspace"
    assert reason(await bench.call("delete", path="none.txt")) == "file_missing"
    assert not (tmp_path / "mine" / "asked").exists()
    assert reason(await bench.call("write", path="in.txt", text="x")) == "hook_denied"
    assert bench.user.asked == []


@pytest.mark.promise("HOOK-3")
async def test_a_hook_that_lets_a_call_pass_leaves_the_asking_to_the_user(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench("ask", hooks=[hook(tmp_path / "mine", "before_tool", "say()")])
    bench.user.says = "reject"
    assert reason(await bench.call("write", path="a.txt", text="x\n")) == "user_rejected"
    (asked,) = bench.user.asked
    assert "hook" not in asked.why


async def written_together(bench: Bench) -> list[ToolCall]:
    """The calls of one answer that writes two files."""
    made = [
        ToolCall(id=new_id("call"), name="write", arguments={"path": p, "text": "x\n"})
        for p in ("a.txt", "b.txt")
    ]
    for call in made:
        bench.wanted(call)
    await bench.gate.run_all(made, "t_1")
    return made


@pytest.mark.promise("HOOK-3")
async def test_calls_made_together_pass_hooks_one_by_one(make_bench: MakeBench, tmp_path: Path) -> None:
    body = 'if asked["arguments"]["path"] == "b.txt": say(deny="not that one")'
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body)])
    made = await written_together(bench)
    assert [reason(bench.finished(call.id)) for call in made] == ["other_refused", "hook_denied"]
    assert list(bench.root.iterdir()) == []


# Changing arguments


@pytest.mark.promise("HOOK-2")
async def test_a_hook_changes_arguments_and_the_log_and_the_model_say_so(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    body = 'say(arguments=asked["arguments"] | {"text": "two\\n"})'
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body)])
    done = await bench.call("write", path="a.txt", text="one\n")
    assert done.status == "ok"
    assert (bench.root / "a.txt").read_text() == "two\n"
    (begun,) = [event for event in bench.events() if isinstance(event, ToolStarted)]
    assert begun.arguments == {"path": "a.txt", "text": "two\n"}
    (spoke,) = spoken(bench)
    assert (spoke.did, spoke.arguments) == ("changed", begun.arguments)
    assert "hook.py) changed the arguments to" in done.content


@pytest.mark.promise("HOOK-2")
async def test_the_user_is_asked_about_what_the_hook_made_of_the_call(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    body = 'say(arguments={"path": "b.txt", "text": "two\\n"})'
    bench = make_bench("ask", hooks=[hook(tmp_path / "mine", "before_tool", body)])
    assert (await bench.call("write", path="a.txt", text="one\n")).status == "ok"
    (asked,) = bench.user.asked
    assert asked.summary == "b.txt"
    assert "+two" in asked.preview
    assert "one" not in asked.preview
    assert asked.why.endswith("hook.py changed what the model asked for")
    assert not (bench.root / "a.txt").exists()


@pytest.mark.promise("HOOK-2")
@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ({"path": "../out.txt", "text": "x"}, "outside_workspace"),
        ({"path": ".git/config", "text": "x"}, "protected_path"),
        ({"path": "a.txt"}, "invalid_arguments"),
        ({"path": "a\0.txt", "text": "x"}, "invalid_arguments"),
    ],
)
async def test_a_changed_call_is_refused_where_the_model_s_own_would_be(
    make_bench: MakeBench, tmp_path: Path, arguments: dict[str, str], refused: str
) -> None:
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", f"say(arguments={arguments!r})")])
    finished = await bench.call("write", path="a.txt", text="one\n")
    assert reason(finished) == refused
    assert "changed the arguments" in finished.content
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.promise("HOOK-2")
async def test_a_command_that_a_hook_writes_is_judged_as_one(make_bench: MakeBench, tmp_path: Path) -> None:
    body = 'say(arguments={"command": "rm -r build"})'
    bench = make_bench(hooks=[hook(tmp_path / "mine", "before_tool", body)])
    (bench.root / "build").mkdir()
    bench.user.says = "reject"
    assert reason(await bench.call("run", command="ls")) == "user_rejected"
    assert [asked.preview for asked in bench.user.asked] == ["rm -r build"]
    assert (bench.root / "build").exists()


async def test_each_hook_is_asked_once_and_sees_what_those_before_it_changed(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    body = 'text = asked["arguments"]["text"]\nsay(arguments={"path": "a.txt", "text": text + NAME + "\\n"})'
    hooks = [
        hook(tmp_path / "mine", "before_tool", f"NAME = {name!r}\n{body}", name=f"{name}.py")
        for name in "xyz"
    ]
    bench = make_bench(hooks=hooks)
    await bench.call("write", path="a.txt", text="")
    assert (bench.root / "a.txt").read_text() == "x\ny\nz\n"


@pytest.mark.promise("HOOK-2")
async def test_a_changed_call_of_a_group_is_made_with_the_others_and_asked_about_once(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    body = 'if asked["arguments"]["path"] == "b.txt": say(arguments={"path": "c.txt", "text": "c\\n"})'
    bench = make_bench("ask", hooks=[hook(tmp_path / "mine", "before_tool", body)])
    made = await written_together(bench)
    assert sorted(path.name for path in bench.root.iterdir()) == ["a.txt", "c.txt"]
    (asked,) = bench.user.asked
    assert "hook.py changed" in asked.why
    assert "changed the arguments" in bench.finished(made[1].id).content
    assert "changed the arguments" not in bench.finished(made[0].id).content


# After a call


async def test_what_a_hook_says_after_a_call_stands_behind_its_result(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    body = "say(tell=f\"{asked['tool']} was {asked['status']}: {asked['content'][:3]}\")"
    bench = make_bench(hooks=[hook(tmp_path / "mine", "after_tool", body)])
    (bench.root / "a.txt").write_text("one\n")
    done = await bench.call("read", path="a.txt")
    (result,) = [entry for entry in bench.session.transcript if isinstance(entry, ToolResultEntry)]
    assert result.content.startswith(done.content)
    assert result.content.endswith("hook.py says: read was ok: ###]")
    # The call had ended before the hook was asked: whatever happens to it, nothing is unsure.
    assert bench.types(2) == ["tool_finished", "hook_spoke"]


async def test_a_hook_that_fails_after_a_call_leaves_it_done_and_is_told(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench(hooks=[hook(tmp_path / "mine", "after_tool", "sys.exit(3)")])
    assert (await bench.call("write", path="a.txt", text="one\n")).status == "ok"
    (spoke,) = spoken(bench)
    assert (spoke.did, spoke.text) == ("failed", "it ended with status 3")
    (result,) = [entry for entry in bench.session.transcript if isinstance(entry, ToolResultEntry)]
    assert "failed after this was done: it ended with status 3" in result.content


async def test_calls_that_did_not_run_have_no_after(make_bench: MakeBench, tmp_path: Path) -> None:
    bench = make_bench("explore", hooks=[hook(tmp_path / "mine", "after_tool", 'say(tell="x")')])
    assert reason(await bench.call("write", path="a.txt", text="one\n")) == "mode_forbids"
    assert spoken(bench) == []


async def test_each_call_of_a_group_has_its_after(make_bench: MakeBench, tmp_path: Path) -> None:
    bench = make_bench(hooks=[hook(tmp_path / "mine", "after_tool", 'say(tell=asked["arguments"]["path"])')])
    made = await written_together(bench)
    assert [(spoke.call_id, spoke.text) for spoke in spoken(bench)] == [
        (made[0].id, "a.txt"),
        (made[1].id, "b.txt"),
    ]


# Whose program


@pytest.mark.promise("HOOK-6")
async def test_a_hook_of_the_user_never_runs_a_file_of_the_workspace(
    make_bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    (root / "bin").mkdir(parents=True)
    evil = root / "bin" / "guard"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    monkeypatch.setenv("PATH", f"{root / 'bin'}:.:{os.environ['PATH']}")
    monkeypatch.chdir(root / "bin")
    link = tmp_path / "mine" / "link"
    link.parent.mkdir()
    link.symlink_to(evil)
    hooks = [
        hook(tmp_path / "mine", "before_tool", run=run, match=(tool,))
        for tool, run in {
            "list": ("guard",),
            "read": (str(evil),),
            "glob": ("sh", str(evil)),
            "search": ("./link",),
        }.items()
    ]
    bench = make_bench(hooks=hooks)
    assert reason(await bench.call("list")) == "hook_denied"
    assert reason(await bench.call("read", path="bin/guard")) == "hook_denied"
    assert reason(await bench.call("glob", pattern="*")) == "hook_denied"
    assert reason(await bench.call("search", pattern="x")) == "hook_denied"
    assert not (tmp_path / "ran").exists()


async def test_a_hook_beside_settings_runs_where_the_workspace_holds_them(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    own = hook(tmp_path / "work" / "config", "before_tool", 'say(deny="seen")')
    bench = make_bench(hooks=[own])
    await bench.call("list")
    assert [spoke.text for spoke in spoken(bench)] == ["seen"]


@pytest.mark.promise("HOOK-6")
async def test_a_program_of_the_workspace_that_changed_since_it_was_trusted_denies(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    root = tmp_path / "work"
    words = program(root / ".handrail", "say()")
    (root / ".handrail" / "hook.py").write_bytes(b"print('{}')\n")
    sha256 = hashlib.sha256(b"print('{}')\n").hexdigest()
    settings = HookSettings(on="before_tool", run=tuple(words))
    trusted = Hook(settings, root / ".handrail", "config.toml:1", {".handrail/hook.py": sha256})
    bench = make_bench(hooks=[trusted])
    assert (await bench.call("list")).status == "ok"
    (root / ".handrail" / "hook.py").write_bytes(b"print()\n")
    assert reason(await bench.call("list")) == "hook_denied"
    assert "handrail trust" in spoken(bench)[0].text


@pytest.mark.promise("HOOK-6")
async def test_what_runs_is_what_was_trusted_whatever_is_put_in_its_place_meanwhile(
    make_bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, temp = tmp_path / "work", tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    (root / ".handrail").mkdir(parents=True)
    body = (
        b"import json, os, pathlib, sys\n"
        b"place = pathlib.Path(os.environ['HANDRAIL_WORKSPACE'], 'guard.py')\n"
        b'place.write_text(\'import json; print(json.dumps({"deny": "another"}))\')\n'
        b"print(json.dumps({'deny': open(sys.argv[0]).read()[:6] + ' ' + os.path.basename(sys.argv[0])}))\n"
    )
    (root / "guard.py").write_bytes(body)
    settings = HookSettings(on="before_tool", run=(sys.executable, "../guard.py"))
    trusted = Hook(
        settings, root / ".handrail", "config.toml:1", {"guard.py": hashlib.sha256(body).hexdigest()}
    )
    bench = make_bench(hooks=[trusted])
    await bench.call("list")
    assert [spoke.text for spoke in spoken(bench)] == ["import guard.py"]
    assert reason(await bench.call("list")) == "hook_denied"
    assert "untrusted" in spoken(bench)[1].text
    assert not list(temp.iterdir())
