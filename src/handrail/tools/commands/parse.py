"""Parse bash commands with shfmt, and find the commands that an answer suggests."""

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from handrail.policy.commands.denied import embedded_texts, unparsed_call
from handrail.policy.commands.script import MAX_CHARS, UNKNOWN, Script, why_unreadable
from handrail.tools.commands.shell_tree import (
    Node,
    all_nodes,
    called_programs,
    read_script,
    shell_inputs,
    written_paths,
)
from handrail.tools.process import find_program

SECONDS = 2.0
# The dialect as an option also keeps shfmt from looking for an .editorconfig, which is the workspace's.
SHFMT_OPTIONS = ("--to-json", "--language-dialect=bash")
SHFMT_ENVIRONMENT = {"GOMAXPROCS": "1", "GOGC": "off"}  # it ends before threads or garbage collection help
CHUNK = 1 << 16
LINE_CONTINUATION = "\\\n"
MAX_EMBEDDED = 12  # texts that are parsed because a shell in the command would run them


PLAIN = re.compile(r"[A-Za-z0-9_./-]+(?: [A-Za-z0-9_./:=,@%+-]+)*")
KEYWORDS = (
    *("if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in"),
    *("function", "select", "time", "coproc"),
    *("declare", "local", "export", "readonly", "typeset", "nameref", "let"),
)
"""What begins something else than a call of a program, for bash or for shfmt."""


class UnreadableCommand(Exception):
    """Why a command cannot be parsed."""


def parse_command(text: str) -> Script:
    """The parsed command; if it cannot be parsed, `problem` says why."""
    try:
        return _parse_cached(text, find_shfmt())
    except UnreadableCommand as problem:
        return Script(text, problem=str(problem), calls=(unparsed_call(text),), parsed=False)
    except RecursionError:
        return Script(
            text, problem="the command is nested too deeply", calls=(unparsed_call(text),), parsed=False
        )


def plain_tree(text: str) -> dict[str, Any]:
    """The tree of a program's name and plain words, which needs no parser; empty for anything else."""
    words = text.split(" ")
    if not PLAIN.fullmatch(text) or words[0] in KEYWORDS:
        return {}
    arguments = [{"Parts": [{"Type": "Lit", "Value": word}]} for word in words]
    return {"Type": "File", "Stmts": [{"Cmd": {"Type": "CallExpr", "Args": arguments}}]}


def find_shfmt() -> str:
    """The program installed beside ours, else the system's; raises UnreadableCommand if there is none."""
    ours = Path(sys.executable).with_name("shfmt")
    program = str(ours) if os.access(ours, os.X_OK) else find_program("shfmt")
    if program is None:
        raise UnreadableCommand("shfmt is missing, so no command can be parsed; install shfmt-py")
    return program


@lru_cache(maxsize=256)
def _parse_cached(text: str, program: str) -> Script:
    tree = _run_shfmt(text, program)
    script, trees = read_script(text, tree), [tree]
    if LINE_CONTINUATION in text:
        # bash removes these before it reads a token, also between `$` and `(`, and the grammar does not.
        joined = text.replace(LINE_CONTINUATION, "")
        trees.append(_run_shfmt(joined, program))
        if read_script(joined, trees[1]).commands != script.commands:
            problem = script.problem or "the command has a line continuation that can be read in two ways"
            script = Script(text, problem=problem)
    writes = tuple(dict.fromkeys(target for each in trees for target in written_paths(each)))
    return replace(script, writes=writes, calls=tuple(dict.fromkeys(_all_calls(trees, program))))


def _all_calls(trees: Sequence[Node], program: str) -> Iterator[tuple[str, ...]]:
    """The words of every command in the trees, and in the texts that shells in them would run."""
    left = list(trees)
    texts: dict[str, None] = {}
    for tree in left:  # grows
        calls = called_programs(tree)
        yield from calls
        for found in (*(text for words in calls for text in embedded_texts(words)), *shell_inputs(tree)):
            text = found.replace(UNKNOWN, "${_}")
            if text in texts:
                continue
            texts[text] = None
            try:
                if len(texts) > MAX_EMBEDDED or sum(map(len, texts)) > MAX_CHARS:
                    raise UnreadableCommand("too many")
                left.append(_run_shfmt(text, program))
            except UnreadableCommand:
                yield unparsed_call(text)


def _run_shfmt(text: str, program: str) -> dict[str, Any]:
    """shfmt's syntax tree of the text; raises UnreadableCommand."""
    if problem := why_unreadable(text):
        raise UnreadableCommand(problem)
    if plain := plain_tree(text):
        return plain
    try:
        with subprocess.Popen(
            [program, *SHFMT_OPTIONS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=SHFMT_ENVIRONMENT,
        ) as process:
            try:
                output = _communicate(process, text.encode())
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise UnreadableCommand("the command is not complete or not valid bash")
        tree: dict[str, Any] = json.loads(output)
    except subprocess.TimeoutExpired as error:
        raise UnreadableCommand("the command takes too long to parse") from error
    except (OSError, ValueError) as error:
        raise UnreadableCommand(f"the command cannot be parsed ({type(error).__name__})") from error
    return tree


def _communicate(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """Everything the program prints. `Popen.communicate` with a deadline would poll, which is slower."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("the program has no pipes")
    stdin, stdout = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(stdin, False)
    deadline = time.monotonic() + SECONDS
    ready = select.poll()
    ready.register(stdout, select.POLLIN)
    ready.register(stdin, select.POLLOUT)
    output = bytearray()
    while found := ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
        for number, _ in found:
            if number == stdout:
                chunk = os.read(stdout, CHUNK)
                if not chunk:
                    return bytes(output)
                output += chunk
            else:
                with suppress(BrokenPipeError):
                    question = question[os.write(stdin, question) :]
                    if question:
                        continue
                ready.unregister(stdin)
                process.stdin.close()
    raise subprocess.TimeoutExpired(process.args, SECONDS)


SHELL_LANGUAGES = ("sh", "bash", "zsh", "shell")
CONSOLE_LANGUAGES = ("console", "shell-session", "shellsession", "terminal")
"""Such a block shows input and output: only lines with a prompt are commands."""
FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
PROMPT, CONTINUATION = "$ ", "> "
MAX_COMMANDS = 50
MAX_ANSWER = 200_000
CHANGE_SHELL = ("cd", "pushd", "popd", "source", ".", "set", "shopt", "alias", "unset", "umask", "ulimit")


def has_shell_block(answer: str) -> bool:
    """Whether the answer may suggest commands, without parsing them."""
    return any(True for _ in _shell_blocks(answer))


def suggested_commands(answer: str) -> tuple[str, ...]:
    """The commands that an answer suggests, in order, each once; waits for the shell parser."""
    found = (command for block in _shell_blocks(answer) for command in _commands(block))
    return tuple(dict.fromkeys(found))[:MAX_COMMANDS]


def _shell_blocks(answer: str) -> Iterator[str]:
    """The contents of closed fences named after a shell, without prompts."""
    mark, language, indent, lines = "", "", "", list[str]()
    for line in answer[:MAX_ANSWER].replace("\r\n", "\n").split("\n"):
        fence = FENCE.match(line)
        if not mark:
            if fence:
                indent, mark, language = fence[1], fence[2], fence[3].lower()
                lines = []
        elif fence and fence[2].startswith(mark) and not fence[3]:
            if block := _without_prompts(lines, language):
                yield block
            mark = ""
        else:
            lines.append(line.removeprefix(indent))


def _without_prompts(lines: Sequence[str], language: str) -> str:
    """The script in a block; empty if it has none."""
    if language not in (*SHELL_LANGUAGES, *CONSOLE_LANGUAGES):
        return ""
    if not any(line.startswith(PROMPT) for line in lines):
        return "\n".join(lines).strip() if language in SHELL_LANGUAGES else ""
    script: list[str] = []
    goes_on = False
    for line in lines:
        if line.startswith(PROMPT):
            script.append(line.removeprefix(PROMPT))
        elif goes_on:
            script.append(line.removeprefix(CONTINUATION))
        else:
            continue
        goes_on = script[-1].endswith("\\")
    return "\n".join(script)


def _commands(block: str) -> Iterator[str]:
    """Each statement, after the earlier ones in the block that change the shell for it."""
    parts = _split_statements(block)
    if not parts:
        yield block  # it does not parse; running it reports why
        return
    before: list[str] = []
    for text, lasts in parts:
        if lasts:
            before.append(text)
        else:
            yield _join_statements([*before, text])
    if parts[-1][1]:
        yield _join_statements(before)


def _join_statements(texts: Sequence[str]) -> str:
    single_lines = all("\n" not in text for text in texts[:-1])
    return (" && " if single_lines else "\n").join(texts)


def _split_statements(block: str) -> list[tuple[str, bool]]:
    """The statements of a script, each with whether it changes the shell for those that follow."""
    if plain := plain_tree(block):  # it has no positions, and is one statement
        return [(block.strip(), _changes_shell(plain["Stmts"][0]))]
    data = block.encode(errors="replace")
    spans: list[tuple[int, int, bool]] = []
    try:
        nodes = _run_shfmt(block, find_shfmt()).get("Stmts", ())
    except (UnreadableCommand, RecursionError):
        return []
    for node in nodes:
        documents = [each["Hdoc"] for each in all_nodes(node) if "Hdoc" in each]
        start, end = node["Pos"]["Offset"], max(each["End"]["Offset"] for each in (node, *documents))
        if spans and start < spans[-1][1]:  # it stands before the other's here-document: keep them together
            first, last, lasts = spans[-1]
            spans[-1] = (first, max(last, end), lasts)
        else:
            spans.append((start, end, _changes_shell(node)))
    texts = [(data[start:end].decode(errors="replace").strip(), lasts) for start, end, lasts in spans]
    return [
        (text if text.endswith(";;") else text.removesuffix(";").rstrip(), lasts) for text, lasts in texts
    ]


def _changes_shell(node: Node) -> bool:
    command = node.get("Cmd") or {}
    kind = command.get("Type")
    if kind in ("DeclClause", "FuncDecl"):
        return True
    if kind != "CallExpr" or node.get("Background"):
        return False
    words = command.get("Args", ())
    if not words:
        return bool(command.get("Assigns"))
    parts = words[0]["Parts"]
    return len(parts) == 1 and parts[0].get("Value") in CHANGE_SHELL
