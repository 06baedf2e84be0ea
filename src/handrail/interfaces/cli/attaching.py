"""Pictures that the user names outside of a message's words."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.protocol.commands import SendMessage
from handrail.protocol.errors import UsageProblem

if TYPE_CHECKING:
    from handrail.app import App


def with_images(app: "App", message: SendMessage, files: Sequence[Path]) -> SendMessage:
    """The message with these pictures; UsageProblem where one is unfit, or they are too many."""
    if not files:
        return message
    from handrail.context.mentions import too_many

    images = tuple(app.image(file) for file in files)
    if problem := too_many(images):
        raise UsageProblem(f"{problem[:1].upper()}{problem[1:]} Send them in several.")
    return message.model_copy(update={"images": images})
