"""What the user says, as an event: with the files, pictures and map that the model is shown with it."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from handrail.context.budget import shown_characters, text_tokens
from handrail.context.images import fits
from handrail.context.known_files import known_files
from handrail.context.map.repository_map import RepositoryMap
from handrail.context.map.shown import MapPart
from handrail.context.mentions import ATTACHED_CAP, attach_mentions
from handrail.context.reattaching import AGAIN_CAP, reattach
from handrail.context.run_summaries import RunPart, new_runs
from handrail.context.situation import situation
from handrail.models.base import Capabilities, Model
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import UserMessage
from handrail.protocol.values import AttachedImage
from handrail.sessions.run_state import RunState
from handrail.sessions.state import State
from handrail.workspace.files import Workspace

BLIND = "{name}: {model} cannot see pictures, and is told so. /model or --model chooses one that can."

UNSEEN = "{name}: a run does not look at pictures, and gets only your words. Say what it should take from it."


class Taken(NamedTuple):
    """A message as an event, and the pictures that go with it."""

    event: UserMessage
    blobs: tuple[bytes, ...]

    def noting(self, note: str) -> "Taken":
        """The same with one more thing that the user is told, if there is any."""
        noted = (*self.event.unattached, *filter(None, [note]))
        return self._replace(event=self.event.model_copy(update={"unattached": noted}))

    def to_run(self, run: RunState, command: SendMessage, route: str) -> "Taken":
        """The same as a word to a paused run, which may not have asked yet when it was sent.

        `route` is where it goes by the user's word, if they said so.
        """
        early = command.seen is not None and command.seen < run.menu
        return self._replace(event=self.event.model_copy(update={"early": early, "route": route}))


class Messages(NamedTuple):
    """Makes the messages of one session, for the model that will read them, if one is known."""

    workspace: Workspace
    map: RepositoryMap
    model: Model | None

    def taken(
        self,
        command: SendMessage,
        state: State,
        turn_id: str,
        *,
        steering: bool,
        run_id: str = "",
        told: str = "",
        pictures: bool = True,
    ) -> Taken:
        """The message with all that goes with it; `run_id` is that of a paused run which it is a word to.

        `told` is what the model has to know to understand it; `pictures`: whoever reads it can look at them.
        """
        bare = steering or bool(run_id)
        can = self.model.capabilities if self.model else Capabilities(images=True)
        cap = shown_characters(can.context_window, most=ATTACHED_CAP, share=3)
        also: Sequence[str] = ()
        if can.one_action:
            from handrail.context.small import files_in_play

            also = files_in_play(command.text, state.files.files, self.workspace)
        named = "" if command.suggested else command.text
        attached = attach_mentions(named, self.workspace, cap, command.images, also)
        again_cap = shown_characters(can.context_window, most=AGAIN_CAP, share=6)
        shown = {seen.path for seen in attached.files}
        again = reattach(state, self.workspace, again_cap, shown, own=not bare)
        files = (*attached.files, *again.files)
        known = "" if bare or can.one_action else known_files(state, files, again.gone, again.stale)
        now = "" if bare else self._situation(state, can)
        runs = RunPart() if bare else new_runs(state, can.context_window)
        mapped = MapPart() if bare else self.map.part(state, command.text, can)
        images = (*command.images, *(each.image for each in attached.images))
        event = UserMessage(
            message_id=command.message_id,
            turn_id=turn_id,
            text=command.text,
            attached="\n\n".join(
                part for part in (attached.text, again.text, mapped.text, known, runs.text, now, told) if part
            ),
            files=files,
            gone=again.gone,
            images=images,
            unattached=(*attached.unattached, *self._unseen(command.text, images, pictures=pictures)),
            mapped=mapped.paths,
            steering=steering,
            suggested=command.suggested,
            runs=runs.runs,
            run_id=run_id,
        )
        return Taken(event, tuple(each.data for each in attached.images))

    def _situation(self, state: State, can: Capabilities) -> str:
        """What changes from turn to turn; a small model makes nothing of the date, and cannot list files."""
        done = self._done(state) if state.intent and not can.one_action else ()
        now = situation(state, time.time(), dated=not can.one_action, done=done)
        if not can.one_action:
            return now
        from handrail.context.small import file_list

        return "\n".join(part for part in (file_list(self.workspace), now) if part)

    def _done(self, state: State) -> list[str]:
        from handrail.tools.intent_block import recent_trace

        return [f"{each.op} {each.file}" for each in recent_trace(self.workspace, state.intent)]

    def _unseen(self, text: str, images: Sequence[AttachedImage], *, pictures: bool) -> list[str]:
        """For the user: what the model will not see."""
        if not pictures:
            return [UNSEEN.format(name=image.name) for image in images]
        if self.model is None:
            return []
        can, name = self.model.capabilities, self.model.name
        told = []
        if text_tokens(text) > can.context_window / 2:
            told = [f"your message is too long for the window of {name}: its middle may be left out"]
        if not can.images:
            return told + [BLIND.format(name=image.name, model=name) for image in images]
        if fits(images, can.context_window):
            return told
        return told + [f"{image.name}: too large for the window of {name}" for image in images]
