"""Commands as the rules see them, for tests: their words as they stand, no shell grammar asked."""

from handrail.policy.call_facts import CommandFacts
from handrail.policy.commands.judge import CommandLists, CommandVerdict, command_lists, judge, parse_entries
from handrail.policy.commands.script import Script, SimpleCommand, Word


def judged(text: str, *allow: str, only: bool = False, deny: tuple[str, ...] = ()) -> CommandVerdict:
    """The verdict about words between blanks; `only`: without the default list."""
    lists = command_lists(allow, deny)
    if only:
        lists = CommandLists(parse_entries(allow), lists.denied)
    return judge(Script(text, (SimpleCommand(tuple(map(Word, text.split()))),)), lists)


def known(text: str, *allow: str) -> CommandFacts:
    """The facts of a command whose paths all lead into the workspace."""
    if "|" in text:
        return CommandFacts(judge(Script(text, problem="the command has a subshell"), CommandLists()))
    return CommandFacts(judged(text, *allow))
