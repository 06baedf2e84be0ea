"""A conversation: messages, answers to what it asks, and every other command."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from handrail.app import command_checks
from handrail.app.history.sessions import PlanState, background_output
from handrail.config.credentials import MAX_CHARACTERS
from handrail.interfaces.http.endpoint import BYTES, Call, Endpoint, Upload
from handrail.interfaces.http.errors import ApiError, not_found
from handrail.protocol.commands import (
    AnswerApproval,
    AnswerQuestion,
    Cancel,
    Command,
    RunAll,
    RunCommand,
    SendMessage,
    SetPlan,
)
from handrail.protocol.errors import UsageProblem
from handrail.protocol.plan import plan_as_text, plan_from_text
from handrail.protocol.values import AttachedImage, Value

MAX_IMAGE = 20_000_000
OUTPUT_CHARS = 20_000
MESSAGE_ID = re.compile(r"m_[0-9a-z]{1,40}")


class Accepted(Value):
    """The command is queued for the process that holds the session; events say what comes of it."""

    seq: int
    """The last event before it."""
    command: Command
    """As it was queued, with its ids."""


async def accept(call: Call, command: Command) -> Accepted:
    if isinstance(command, SendMessage | RunCommand | RunAll) and not MESSAGE_ID.fullmatch(
        command.message_id
    ):
        raise UsageProblem("A message_id begins with `m_`. Leave it out to get one.")
    if isinstance(command, SendMessage) and not (command.text.strip() or command.images or command.resume):
        raise UsageProblem("The message is empty. Write something.")
    seq = call.app.last_seq(call.session_id)
    return Accepted(seq, await call.app.send(call.session_id, command))


async def send_message(call: Call, body: SendMessage) -> Accepted:
    """Start a turn with a message, or steer the one that is running."""
    return await accept(call, body)


async def send_command(call: Call, body: Command) -> Accepted:
    """Any command of the session, by its `type`."""
    return await accept(call, body)


async def cancel(call: Call) -> Accepted:
    """Stop the running turn; what was done stays done."""
    return await accept(call, Cancel())


class Decision(Value):
    decision: Literal["once", "always", "allow", "reject"]
    note: Annotated[str, Meta(max_length=10_000)] = ""
    """A reason, which goes to the model."""


async def answer_approval(call: Call, body: Decision) -> Accepted:
    """Answer an approval that is asked for."""
    wanted = call.names["approval"]
    if wanted not in call.app.state(call.session_id).approvals:
        raise not_found(f"No approval {wanted!r} is asked for (any more).", "GET the session lists them.")
    return await accept(call, AnswerApproval(wanted, body.decision, body.note))


class Answer(Value):
    answer: Annotated[str, Meta(max_length=100_000)]


async def answer_question(call: Call, body: Answer) -> Accepted:
    """Answer a question of the model."""
    wanted = call.names["question"]
    if wanted not in call.app.state(call.session_id).questions:
        raise not_found(f"No question {wanted!r} is asked (any more).", "GET the session lists them.")
    return await accept(call, AnswerQuestion(wanted, body.answer))


class TypedSecret(Value):
    value: Annotated[str, Meta(max_length=MAX_CHARACTERS)]
    """Empty: declined."""


async def answer_with_secret(call: Call, body: TypedSecret) -> Accepted:
    """Store the secret that a question asks for; the session is told only that it is stored."""
    seq = call.app.last_seq(call.session_id)
    sent = await command_checks.answer_with_secret(
        call.app, call.session_id, call.names["question"], body.value
    )
    return Accepted(seq, sent)


class PlanText(Value):
    plan_id: str
    text: Annotated[str, Meta(max_length=100_000)]
    """An objective, then numbered steps, each with lines `files:` and `check:` if it has some."""


class ShownPlan(PlanText):
    approved: bool


def _plan(call: Call) -> PlanState:
    if (found := call.app.state(call.session_id).plan) is None:
        raise not_found("There is no plan in this session.", "/plan TASK makes one.")
    return found


async def show_plan(call: Call) -> ShownPlan:
    """The session's plan, as text that a person can edit."""
    found = _plan(call)
    return ShownPlan(found.plan_id, plan_as_text(found.plan), found.approved)


async def edit_plan(call: Call, body: PlanText) -> Accepted:
    """Replace the plan of this id by the one in the text; it has to be approved then."""
    if _plan(call).plan_id != body.plan_id:
        advice = "Copy your text, then edit the plan that is there now."
        raise ApiError(409, "changed", "The plan has changed since you began to edit it.", advice)
    if call.app.state(call.session_id).turn:
        raise UsageProblem("A turn is running. Let it end, or stop it; then try again.")
    return await accept(call, SetPlan(plan=plan_from_text(body.text)))


async def attach_image(call: Call, body: Upload) -> AttachedImage:
    """Store an image (PNG, JPEG, GIF, WebP), for the `images` of a message."""
    data = b"".join([part async for part in body.parts])
    return call.app.images.given(data)


class BackgroundOutput(Value):
    text: str
    """The end of it."""


async def read_background(call: Call) -> BackgroundOutput:
    """What a command in the background has written."""
    wanted = call.names["command"]
    text = background_output(call.app, call.session_id, wanted, OUTPUT_CHARS)
    if not text and wanted not in call.app.state(call.session_id).background.running:
        raise not_found(f"No command {wanted!r} runs in the background.", "GET the session lists them.")
    return BackgroundOutput(text)


CONVERSATION_ENDPOINTS = (
    Endpoint("POST", "/sessions/{session}/messages", send_message, status=202),
    Endpoint("POST", "/sessions/{session}/commands", send_command, status=202),
    Endpoint("POST", "/sessions/{session}/cancel", cancel, status=202),
    Endpoint("POST", "/sessions/{session}/approvals/{approval}", answer_approval, status=202),
    Endpoint("POST", "/sessions/{session}/questions/{question}", answer_question, status=202),
    Endpoint("POST", "/sessions/{session}/questions/{question}/secret", answer_with_secret, status=202),
    Endpoint("GET", "/sessions/{session}/plan", show_plan),
    Endpoint("PUT", "/sessions/{session}/plan", edit_plan, status=202),
    Endpoint("GET", "/sessions/{session}/background/{command}", read_background),
    Endpoint("POST", "/images", attach_image, 201, accepts=BYTES, max_body=MAX_IMAGE),
)
