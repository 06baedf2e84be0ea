"""Commands as the rules see them, for tests: their words as they stand, no shell grammar asked."""

from handrail.policy.commands.judge import Judged, Lists, entries, judge, lists_of
from handrail.policy.commands.script import Script, Simple, Word
from handrail.policy.facts import CommandFacts


def judged(text: str, *allow: str, only: bool = False, deny: tuple[str, ...] = ()) -> Judged:
    """The verdict about words between blanks; `only`: without the default list."""
    lists = lists_of(allow, deny)
    if only:
        lists = Lists(entries(allow), lists.denied)
    return judge(Script(text, (Simple(tuple(map(Word, text.split()))),)), lists)


def known(text: str, *allow: str) -> CommandFacts:
    """The facts of a command whose paths all lead into the workspace."""
    if "|" in text:
        return CommandFacts(judge(Script(text, problem="the command has a subshell"), Lists()))
    return CommandFacts(judged(text, *allow))
