"""Commands and asking: how one runs that nobody was asked about, and what would end the asking."""

from handrail.policy.decide import decide
from handrail.policy.decision import ALLOW
from handrail.policy.facts import Facts
from handrail.tools.base import Unasked


def unasked(facts: Facts) -> Unasked | None:
    """How a command runs that the rules alone let through; None where the user said yes to its text."""
    if facts.command is None or facts.always or decide(facts) != ALLOW:
        return None
    judged = facts.command.judged
    return Unasked(
        judged.runs, network=judged.network, git=judged.git, code=judged.runs_code, named=judged.named
    )


def entry_of(facts: Facts) -> str:
    """The entry that would let a command run unasked; empty where the list has no say in it."""
    return facts.command.judged.entry if facts.command and facts.mode == "auto" and not facts.network else ""
