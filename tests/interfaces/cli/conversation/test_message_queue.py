"""Messages that wait in the terminal."""

from handrail.interfaces.cli.conversation.conversation import MessageQueue
from handrail.protocol.commands import SendMessage


def test_a_message_that_was_withdrawn_is_not_sent() -> None:
    queued, first, later = MessageQueue(), SendMessage(text="and then?"), SendMessage(text="or not?")
    queued.add(first)
    assert queued.withdraw() == (first.message_id,)
    queued.add(later)
    queued.clear()  # the slow command that it waited behind has opened another session
    assert queued.pop_withdrawn(first.message_id)
    assert not queued.pop_withdrawn(later.message_id)


def test_a_message_that_was_sent_is_not_withdrawn() -> None:
    queued, first, later = MessageQueue(), SendMessage(text="one"), SendMessage(text="two")
    queued.add(first)
    queued.add(later)
    queued.remove(first.message_id)
    assert list(queued.texts) == ["two"]
    assert queued.withdraw() == (later.message_id,)
    assert list(queued.texts) == []
