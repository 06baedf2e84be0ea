"""Commands that are git's own work and nothing else: the only ones for which a sandbox opens `.git`."""

from handrail.policy.commands.script import Script

READING = ("status", "diff", "log", "show", "rev-parse", "describe", "blame")
WRITING = (
    *("add", "rm", "mv", "commit", "restore", "reset", "stash", "switch", "checkout", "branch", "tag"),
    *("merge", "rebase", "cherry-pick", "revert", "am", "notes", "fetch", "pull", "push"),
)


def writes_git(script: Script) -> bool:
    """Whether every part is a plain `git VERB`, and one of them has to write `.git`."""
    if script.problem or not script.commands:
        return False
    if any(command.texts[0] != "git" or command.redirects for command in script.commands):
        return False
    words = [word for command in script.commands for word in command.texts]
    # Options before the verb, such as -c and --git-dir, would let git run or write something else.
    verbs = [command.texts[1] if len(command.texts) > 1 else "" for command in script.commands]
    known = all(verb in READING + WRITING for verb in verbs) and not any(map(runs_programs, words))
    return known and any(verb in WRITING for verb in verbs)


def runs_programs(word: str) -> bool:
    """Whether a word is an option that names a program for git to run."""
    return word.startswith(("-x", "--ex", "--up", "--rec", "--ed"))
