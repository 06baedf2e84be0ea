"""Messages that wait in the terminal."""

from handrail.interfaces.cli.queued import Queued
from handrail.protocol.commands import SendMessage


def test_a_message_that_was_given_back_before_it_was_sent_is_not_sent_too() -> None:
    queued, first, later = Queued(), SendMessage(text="and then?"), SendMessage(text="or not?")
    queued.add(first)
    assert queued.give_back() == (first.message_id,)
    queued.add(later)
    queued.forget()  # the slow command that it waited behind has opened another session
    assert queued.is_back(first.message_id)
    assert not queued.is_back(later.message_id)


def test_what_was_taken_is_not_given_back() -> None:
    queued, first, later = Queued(), SendMessage(text="one"), SendMessage(text="two")
    queued.add(first)
    queued.add(later)
    queued.taken(first.message_id)
    assert list(queued.texts) == ["two"]
    assert queued.give_back() == (later.message_id,)
    assert list(queued.texts) == []
