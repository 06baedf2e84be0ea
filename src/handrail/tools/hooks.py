"""Hooks where they belong: around calls, before a turn ends, when a session starts.

A hook can only narrow: what it does not deny is decided and asked about as if there were none.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from handrail.config.hooks import Hook
from handrail.protocol.errors import ConfigProblem, ToolRefused
from handrail.protocol.events import HookSpoke, SessionHooked, ToolFinished
from handrail.protocol.ids import new_id
from handrail.protocol.upcast import is_storable
from handrail.protocol.values import HookPoint, ToolCall
from handrail.sessions.handle import Session
from handrail.tools.gathering import Tools, Wanted
from handrail.tools.hook_program import name_of, run_hook
from handrail.tools.recording import refusals, refused
from handrail.tools.secrets import Secrets

DENIED = "A hook of the user's ({hook}) does not allow this: {text}. Do not look for a way around it."
FAILED = (
    "A hook of the user's ({hook}) failed, and what it cannot look at is denied: {text}. Only the user can"
    " mend it: go on with what needs no such call, and say so."
)
START_FAILED = (
    "{place}: the hook {hook} failed when the session started: {text}. Mend it or take it out, then send your"
    " message again."
)
TOLD = "[{hook}]\n{text}"


class Passed(NamedTuple):
    """A call that hooks let through, as they left it."""

    call: ToolCall
    wanted: Wanted


class Hooks:
    """The user's hooks in one session."""

    def __init__(self, hooks: Sequence[Hook], session: Session, workspace: Path, secrets: Secrets) -> None:
        self._hooks = tuple(hooks)
        self._session = session
        self._workspace = workspace
        self._secrets = secrets

    async def before_tool(
        self,
        call: ToolCall,
        wanted: Wanted,
        read: Callable[[ToolCall], Awaitable[Wanted]],
        judge: Callable[[Wanted], object],
    ) -> Passed:
        """The call as hooks want it, read and judged again where one changed it; raises ToolRefused."""
        turn_id = wanted.work.turn_id
        for hook in self._about("before_tool", call.name):
            judge(wanted)
            question = {"call": call.id, "tool": call.name, "arguments": call.arguments}
            spoke = await self._ask(hook, turn_id, question)
            if spoke is None:
                continue
            self._session.append(spoke)
            if spoke.arguments is None:
                words = (DENIED if spoke.did == "denied" else FAILED).format(
                    hook=spoke.hook, text=spoke.text.rstrip(".")
                )
                raise refused(call.name, "hook_denied", words)
            call = call.model_copy(update={"arguments": spoke.arguments})
            with changed_by(spoke.hook, call.name):
                wanted = (await read(call)).changed(changed_by=spoke.hook)
                judge(wanted)
        return Passed(call, wanted)

    async def after_tool(self, call: ToolCall, ended: ToolFinished) -> None:
        """Let hooks speak of a call that has ended; it stays as it is, whatever they say."""
        question = {
            "call": call.id,
            "tool": call.name,
            "arguments": call.arguments,
            "status": ended.status,
            "summary": ended.summary,
            "content": ended.content,
        }
        for hook in self._about("after_tool", call.name):
            if spoke := await self._ask(hook, ended.turn_id, question):
                self._session.append(spoke)

    async def before_end(self, turn_id: str, answer: str) -> HookSpoke | None:
        """The first that does not let the turn end, or failed; not yet in the log."""
        turn = self._session.state.turn
        made = turn.made if turn else []
        files = dict.fromkeys(file.path for change in made for file in change.files)
        question = {"answer": answer, "files": list(files), "demands": turn.demands if turn else 0}
        for hook in self._about("before_end"):
            if spoke := await self._ask(hook, turn_id, question):
                return spoke
        return None

    async def session_start(self) -> None:
        """Run what belongs to the start, unless it has run in this session; raises ConfigProblem."""
        if self._session.state.hooked is not None:
            return
        told = []
        for hook in self._about("session_start"):
            if spoke := await self._ask(hook, "", {}):
                if spoke.did == "failed":
                    message = START_FAILED.format(place=hook.place, hook=spoke.hook, text=spoke.text)
                    raise ConfigProblem(message)
                told.append(TOLD.format(hook=spoke.hook, text=spoke.text))
        self._session.append(SessionHooked(text="\n\n".join(told)))

    def _about(self, on: HookPoint, tool: str = "") -> list[Hook]:
        wanted = [hook for hook in self._hooks if hook.settings.on == on]
        return [hook for hook in wanted if not hook.settings.match or tool in hook.settings.match]

    async def _ask(self, hook: Hook, turn_id: str, question: dict[str, Any]) -> HookSpoke | None:
        """What the hook said, as an event; None where it had nothing to say."""
        on, state = hook.settings.on, self._session.state
        common = {
            "on": on,
            "session": self._session.id,
            "workspace": str(self._workspace),
            "mode": state.mode,
        }
        name, run_id = name_of(hook), new_id("h")
        self._session.live.progress(run_id, f"hook {name}")
        try:
            asked = common | {"turn": turn_id} | question
            said = await run_hook(hook, asked, self._workspace, self._secrets)
        finally:
            self._session.live.settle(run_id)
        spoke = HookSpoke(
            turn_id=turn_id,
            on=on,
            hook=name,
            did="failed",
            text=said.failed,
            call_id=question.get("call", ""),
            tool=question.get("tool", ""),
        )
        answer = said.answer
        if said.failed:
            return spoke
        if answer.deny is not None:
            return spoke.model_copy(update={"did": "denied", "text": answer.deny or "no reason given"})
        if answer.arguments is not None and answer.arguments != question["arguments"]:
            changed = spoke.model_copy(update={"did": "changed", "arguments": answer.arguments})
            if not is_storable(changed):
                return spoke.model_copy(update={"text": "it gave arguments that cannot be stored"})
            return changed
        if answer.tell:
            return spoke.model_copy(update={"did": "told", "text": answer.tell})
        if answer.demand is not None:
            return spoke.model_copy(update={"did": "demanded", "text": answer.demand or "no reason given"})
        return None


@contextmanager
def changed_by(hook: str, tool: str) -> Iterator[None]:
    """Let a refusal say that it is about what a hook made of the call."""
    try:
        with refusals(tool):
            yield
    except ToolRefused as problem:
        message = (
            f"A hook of the user's ({hook}) changed the arguments, and so changed: {problem.error.message}"
        )
        raise ToolRefused(problem.error.model_copy(update={"message": message})) from problem


def change_told(wanted: Wanted, call: ToolCall, most: int = 2_000) -> str:
    """For the model: what a hook made of its arguments."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    shown = arguments if len(arguments) <= most else f"{arguments[:most]}…"
    return f"[a hook of the user's ({wanted.changed_by}) changed the arguments to {shown}]"


def refuse_unknown_tools(hooks: Sequence[Hook], tools: Tools) -> None:
    """A hook that can never be about a call is a mistake: raises ConfigProblem."""
    from handrail.policy.intents import PROPOSAL

    for hook in hooks:
        for name in hook.settings.match:
            if name != PROPOSAL and tools.find(name) is None:
                known = ", ".join([*tools.names("auto"), PROPOSAL])
                raise ConfigProblem(
                    f"{hook.place}: hooks.match: there is no tool {name!r}; there are: {known}."
                )
