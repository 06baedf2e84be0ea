"""Facts about a command, and what the gate would decide about a command or path (`handrail policy`)."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

from msgspec.structs import replace

from handrail.policy.call_facts import Allow, Ask, CommandFacts, Deny, Facts, SandboxFacts
from handrail.policy.commands.judge import CommandLists, judge
from handrail.policy.commands.script import Script, Word
from handrail.policy.decide import Explanation, decide, explain
from handrail.policy.sandbox_mode import written_git
from handrail.protocol.errors import PathProblem
from handrail.protocol.values import Mode, Value
from handrail.tools.commands.expansion import PatternExpander, expand_patterns
from handrail.tools.commands.parse import parse_command
from handrail.tools.gate.approval import auto_approval
from handrail.tools.gate.facts import NO_INTENT, ActiveIntent, path_facts
from handrail.workspace.files import Workspace
from handrail.workspace.paths import ResolvedPath

MAX_BYTES = 100_000  # of a command; Linux takes no argument of more than 128 KiB


def command_facts(text: str, lists: CommandLists, workspace: Workspace) -> CommandFacts:
    """Everything that a decision about a command depends on; waits for the shell parser."""
    script = parse_command(text)
    writes = tuple(
        path_facts(workspace.root, place, to_change=False) for place in _written_places(script, workspace)
    )
    git = written_git(script.calls) if script.parsed else ""
    judged = judge(_with_existing(script, workspace), lists)
    try:
        expanded = expand_patterns(script, workspace)
        judged = judge(_with_existing(expanded, workspace), lists) if expanded is not script else judged
        if len(judged.runs.encode()) > MAX_BYTES:
            raise PathProblem("the names that its patterns match are too long together", "invalid_arguments")
        places = [
            (path_facts(workspace.root, workspace.resolve(path.text), to_change=False), path.made)
            for path in judged.paths
        ]
    except PathProblem as problem:
        return CommandFacts(
            replace(judged, problem=str(problem), reads_only=False, runs=""), writes=writes, git=git
        )
    changes = tuple(place for place, made in places if made)
    return CommandFacts(judged, tuple(place for place, _ in places), changes, writes, git)


def _with_existing(script: Script, workspace: Workspace) -> Script:
    """The script with a mark on the words of git commands that name something, as git reads them."""

    def marked(word: Word) -> Word:
        return replace(word, exists=os.path.lexists(workspace.root / word.text))

    commands = (
        replace(command, words=tuple(map(marked, command.words))) if command.texts[0] == "git" else command
        for command in script.commands
    )
    return replace(script, commands=tuple(commands))


def _written_places(script: Script, workspace: Workspace) -> Iterator[ResolvedPath]:
    expander = PatternExpander(workspace)
    for target in script.writes:
        with suppress(PathProblem):  # nothing can be written at what is not a path
            place = workspace.resolve(target.text)
            if target.names and (target.text.endswith("/") or place.absolute.is_dir()):
                yield from (workspace.resolve(str(place.absolute / name)) for name in target.names)
            elif target.pattern:
                yield from map(workspace.resolve, _matches(expander, target.text))
            else:
                yield place


def _matches(expander: PatternExpander, pattern: str) -> list[str]:
    try:
        return expander.expand(pattern)
    except PathProblem:
        return [pattern]


OTHER_INTENT = "Select another intent, or change this one."
INTENT_HINTS = {
    "scope_violation": "Select an intent whose owned_scope covers it.",
    "missing_intent_id": OTHER_INTENT,
    "unknown_intent": OTHER_INTENT,
    "intent_done": OTHER_INTENT,
    "intent_ignored": OTHER_INTENT,
    "intents_unreadable": "Correct the file of intents.",
}


class CommandExplanation(Value):
    """A verdict with the rule that decided it."""

    verdict: Literal["auto", "ask", "deny"]
    rule: str
    reason: str = ""
    way: str = ""
    runs: str = ""  # the text that would run, if it differs from the command


def explain_command(
    text: str,
    lists: CommandLists,
    workspace: Workspace,
    mode: Mode,
    *,
    confined: bool,
    intent: ActiveIntent = NO_INTENT,
    sandbox: Callable[[CommandFacts], SandboxFacts] = lambda _command: SandboxFacts(),
) -> CommandExplanation:
    """What the gate would decide about the command in a mode; `sandbox` gives facts for mode `sandbox`."""
    known = command_facts(text, lists, workspace)
    facts = Facts(
        "run",
        "run",
        mode,
        command=known,
        confined=confined,
        intent=intent.facts,
        scope=intent.scope,
        sandbox=sandbox(known) if mode == "sandbox" else None,
    )
    judged = known.judged
    match decide(facts):
        case Allow():
            runs = auto_approval(facts)
            shown = runs.text if runs and runs.text != text else ""
            way = "An entry of commands.deny would deny it."
            decided = "mode sandbox" if mode == "sandbox" else judged.decided
            return CommandExplanation("auto", decided, way=way, runs=shown)
        case Ask(reason) if mode == "sandbox":
            way = "Approve it when you are asked; without anybody to ask it is refused."
            return CommandExplanation("ask", "mode sandbox", reason, way)
        case Ask(reason):
            return CommandExplanation("ask", judged.decided or "shell grammar", reason, _hint(facts))
        case Deny(error) if mode == "sandbox" and not judged.denied and error.reason not in INTENT_HINTS:
            way = "Choose another mode, or change what the sandbox lacks."
            return CommandExplanation("deny", "mode sandbox", error.message, way)
        case Deny(error) if error.reason == "mode_forbids":
            way = "Choose another mode; `explore` and `plan` only read."
            return CommandExplanation("deny", f"mode {mode}", error.message, way)
        case Deny(error) if error.reason in INTENT_HINTS:
            return CommandExplanation("deny", error.reason, error.message, INTENT_HINTS[error.reason])
        case Deny(error):
            way = "Remove the entry of commands.deny that denies it."
            return CommandExplanation("deny", judged.decided, error.message, way)


def _hint(facts: Facts) -> str:
    """What would let the command run without asking."""
    if facts.mode in ("ask", "edit"):
        return f"Mode {facts.mode} asks about every command; mode auto runs those that are allowed."
    if facts.command and facts.command.judged.way:
        return facts.command.judged.way
    if facts.command and facts.command.judged.runs_code and not facts.confined:
        return "Install a sandbox (`handrail doctor`), or set commands.without_sandbox = true."
    return "Use only paths in the workspace that are not git's, Handrail's or secret."


def explain_path(
    given: str,
    op: str,
    workspace: Workspace,
    mode: Mode,
    scope: Sequence[str] | None = None,
    *,
    intent: ActiveIntent = NO_INTENT,
) -> Explanation:
    """What the gate would decide about an operation on a path; `scope` replaces the intent's scope."""
    reads = op in ("read", "list")
    try:
        place = workspace.resolve(given)
    except PathProblem as problem:
        reason = f"{problem.reason}: {problem}"
        return Explanation("deny", "paths: no path", reason, "another path")
    return explain(
        Facts(
            tool=op,
            action="look" if reads else "write",
            mode=mode,
            path=path_facts(workspace.root, place, to_change=not reads),
            scope=intent.scope if scope is None else tuple(scope),
            intent=intent.facts,
        )
    )
