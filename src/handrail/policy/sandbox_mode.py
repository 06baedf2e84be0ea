"""Mode `sandbox`: every command runs as it is written, unless it needs more than a full sandbox gives."""

import posixpath
from collections.abc import Sequence
from typing import NamedTuple

from handrail.policy.call_facts import ALLOW, Ask, Decision, Facts, deny
from handrail.policy.commands.denied import program_positions
from handrail.policy.paths import matches_autorun

GIT_VALUE_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix")
GIT_ALWAYS_WRITES = frozenset(
    """
    add rm mv commit restore reset switch checkout merge rebase cherry-pick revert am fetch pull push init
    clone gc prune repack update-index update-ref write-tree commit-tree symbolic-ref read-tree
    filter-branch maintenance
    """.split()
)
GIT_LISTS = {
    "stash": ("list", "show"),
    "worktree": ("list",),
    "submodule": ("status", "summary"),
    "notes": ("list", "show"),
    "remote": ("show", "get-url"),
    "reflog": ("show", "exists"),
    "bisect": ("log", "view", "visualize"),
}
"""Verbs whose first operand says whether they only read; most read without one."""
GIT_WRITES_ALONE = ("stash",)
GIT_NAMES = ("branch", "tag")
GIT_NAME_WRITES = tuple(
    "-d -D -m -M -c -C -f -u -a -s -F --delete --move --copy --force --edit-description".split()
)
GIT_NAME_LISTS = tuple("-l --list --contains --no-contains --merged --no-merged --points-at -n".split())
GIT_CONFIG_READS = ("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list", "--get-urlmatch")
PACKAGE_FOLDERS = frozenset({".venv", "venv", "node_modules"})
GIT_CLOSED = "`.git` is closed in mode sandbox"


class Need(NamedTuple):
    """Something a command needs that the mode does not give."""

    reason: str
    advice: str


def check_in_sandbox(facts: Facts) -> Decision:
    """Ask about what needs more than the mode gives; deny what could not be confined."""
    sandbox, command = facts.sandbox, facts.command
    if command is None:
        return ALLOW
    if sandbox is None:
        message = "The mode was changed to sandbox after the command was read. Repeat it."
        return deny(facts.tool, "mode_forbids", message)
    if sandbox.missing:
        return deny(facts.tool, "mode_forbids", f"{sandbox.missing} The command did not run.")
    if protected := next((path for path in command.writes if path.in_git or path.in_state), None):
        owner = "git" if protected.in_git else "Handrail"
        message = f"{protected.path} belongs to {owner}, and is closed in mode sandbox. Leave it as it is."
        return deny(facts.tool, "protected_path", message, protected.path)
    if sandbox.closed:
        return deny(facts.tool, "outside_workspace", f"{sandbox.closed} Write inside the workspace.")
    needs = sandbox_needs(facts)
    return Ask("; ".join(need.reason for need in needs)) if needs else ALLOW


def sandbox_needs(facts: Facts) -> list[Need]:
    """What the command needs beyond the mode, each with what a model can do if nobody can be asked."""
    command, needs = facts.command, []
    if command is None:
        return []
    judged = command.judged
    if judged.unread:
        why = f"{judged.problem}, so commands.deny cannot be checked"
        needs.append(Need(why, "Write it in another way, or in several commands."))
    if facts.network and not (judged.network and judged.named):
        advice = "There is no network in mode sandbox: work without it, or leave this to the user."
        needs.append(Need("the command needs the network", advice))
    if command.git:
        advice = (
            f"{GIT_CLOSED}: leave commits to the user, who has `/commit`. `git show HEAD:FILE > FILE`"
            " restores a file."
        )
        needs.append(Need(f"`{command.git}` writes .git", advice))
    for place in command.writes:
        if place.inside and runs_elsewhere(place.path):
            advice = f"Leave {place.path} to the user, and say what to write."
            needs.append(Need(f"{place.path} can make other programs run something", advice))
    for path in facts.sandbox.outside if facts.sandbox else ():
        why = f"{path} is outside the workspace: it could be written, and changes there are not recorded"
        needs.append(Need(why, "Write inside the workspace, or in $TMPDIR."))
    return needs


def runs_elsewhere(path: str) -> bool:
    """Whether the file makes programs outside the sandbox run something, apart from installed packages."""
    return matches_autorun(path) and PACKAGE_FOLDERS.isdisjoint(path.split("/"))


def written_git(calls: Sequence[Sequence[str]]) -> str:
    """The first of the commands that writes `.git`, as `git VERB`; empty if none is known to."""
    for words in calls:
        for at in program_positions(tuple(words)):
            is_git = posixpath.basename(words[at]) == "git"
            if is_git and (verb := _writing_verb(words[at + 1 :])):
                return f"git {verb}"
    return ""


def _writing_verb(words: Sequence[str]) -> str:
    left = list(words)
    while left and left[0].startswith("-"):
        del left[: 2 if left[0] in GIT_VALUE_OPTIONS else 1]
    if not left:
        return ""
    verb, rest = left[0], left[1:]
    operands = [word for word in rest if not word.startswith("-")]
    options = [word.partition("=")[0] for word in rest if word.startswith("-")]
    if verb in GIT_LISTS:
        reads = operands[0] in GIT_LISTS[verb] if operands else verb not in GIT_WRITES_ALONE
        return "" if reads else verb
    if verb in GIT_NAMES:
        lists = not operands or any(option in GIT_NAME_LISTS for option in options)
        # `git branch -a` lists all, `git tag -a` makes one.
        writes = [
            option for option in options if option in GIT_NAME_WRITES and (option != "-a" or verb == "tag")
        ]
        return "" if lists and not writes else verb
    if verb == "config":
        reads = any(word in GIT_CONFIG_READS for word in rest) or (len(operands) == 1 and not options)
        return "" if reads else verb
    if verb == "apply":
        return verb if {"--index", "--cached", "-3", "--3way"} & set(options) else ""
    return verb if verb in GIT_ALWAYS_WRITES else ""
