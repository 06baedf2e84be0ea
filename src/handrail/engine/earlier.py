"""The last turns before a message, in short: what "it" and "that" in it can mean."""

from handrail.sessions.handle import Session
from handrail.sessions.transcript import Replied, Said
from handrail.tools.clip import head_and_tail

SHOWN, TURNS = 300, 3


def earlier_turns(session: Session) -> str:
    """What was said before the message of the turn that runs; empty where nothing was."""
    begun = session.state.turn.message_seq if session.state.turn else 0
    told: list[str] = []
    turns = 0
    for entry in reversed(session.transcript):
        match entry:
            case Said(by="user") if entry.seq < begun:
                turns += 1
                told.append(f"user: {head_and_tail(entry.words, SHOWN)}")
            case Replied() if entry.text and entry.seq < begun:
                told.append(f"assistant: {head_and_tail(entry.text, SHOWN)}")
        if turns == TURNS:
            break
    return "\n".join(reversed(told))
