"""What is said about a sandbox, and for how long it is believed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.protocol.values import to_json
from handrail.storage.scratch import write_cached
from handrail.tools.sandbox.sandbox import Protection, Sandbox, machine_fingerprint
from tests.tools.sandbox.machine import working

NOTHING = Protection(why="nothing works")
WHOLE = Protection(
    name="bubblewrap",
    version="1",
    files=True,
    git=True,
    secrets=True,
    metadata=True,
    devices=True,
    tcp=True,
    udp=True,
    sockets=True,
    others=True,
    keys=True,
    children=True,
    ipc=True,
    shm=True,
    processes=True,
    memory=True,
    walled=True,
)


@pytest.mark.promise("SAND-9")
def test_only_what_was_seen_is_claimed() -> None:
    assert NOTHING.title() == "no sandbox"
    assert NOTHING.given == ()
    assert NOTHING.model_note() == ""
    assert WHOLE.title() == "sandbox bubblewrap, no network"
    assert WHOLE.title(network=True) == "sandbox bubblewrap, with network"
    assert WHOLE.missing == ()
    tcp_only = replace(WHOLE, udp=False)
    assert tcp_only.title() == "sandbox bubblewrap, no TCP"
    assert "UDP is open" in tcp_only.missing
    assert "no network" not in tcp_only.given


@pytest.mark.promise("SAND-9")
@pytest.mark.parametrize(
    "fact",
    [
        *("files", "git", "secrets", "metadata", "devices", "udp", "sockets", "others", "keys"),
        *("children", "ipc", "shm", "processes", "memory"),
    ],
)
def test_each_thing_that_is_not_given_is_named(fact: str) -> None:
    without = replace(WHOLE, **{fact: False})
    assert without.missing
    assert set(without.given) < set(WHOLE.given) or fact in ("sockets", "devices", "keys", "shm")


def test_the_model_is_told_the_rules_that_hold() -> None:
    git = "in .git only by git commands with nothing else beside them"
    network = "no network; if it needs one, repeat the call with `network: true`, and the user is asked"
    assert WHOLE.model_note() == f"[sandbox: writes only inside the workspace, {git}; {network}]"
    assert WHOLE.model_note(network=True) == f"[sandbox: writes only inside the workspace, {git}]"
    assert replace(WHOLE, git=False).model_note() == (
        f"[sandbox: writes only inside the workspace; {network}]"
    )


@pytest.mark.anyio
async def test_what_was_found_is_believed_on_the_same_machine_only(tmp_path: Path) -> None:
    write_cached(tmp_path / "sandbox.json", machine_fingerprint(), to_json(NOTHING))
    assert await Sandbox(tmp_path).protection() == NOTHING
    write_cached(tmp_path / "sandbox.json", "another kernel", to_json(NOTHING))
    assert (await Sandbox(tmp_path).protection()).name == working()[0].name
    # What was found is kept for the next process.
    assert machine_fingerprint() in (tmp_path / "sandbox.json").read_text()


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["", "{", '{"name": "armour"}', "\x00"])
async def test_a_damaged_note_is_found_out_again(tmp_path: Path, text: str) -> None:
    write_cached(tmp_path / "sandbox.json", machine_fingerprint(), text)
    assert (await Sandbox(tmp_path).protection()).active


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_written_does_not_stop_the_looking(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert (await Sandbox(tmp_path / "file").protection()).active
