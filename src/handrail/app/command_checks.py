"""What is checked about a command before it is sent to a session."""

from typing import TYPE_CHECKING

from msgspec import ValidationError
from msgspec.structs import replace

from handrail.context.mentions import too_many_images
from handrail.engine.router.router import check_route
from handrail.protocol import commands
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import DECLINED, STORED, to_json

if TYPE_CHECKING:
    from handrail.app.app import App


async def checked_command(app: "App", session_id: str, command: commands.Command) -> commands.Command:
    """The command with full names; raises UsageProblem where it cannot be sent.

    An empty id stands for a session that is to be created.
    """
    if isinstance(command, commands.SetMode):
        await app.check_mode(session_id, command.mode)
    elif isinstance(command, commands.SendMessage | commands.RunCommand | commands.RunAll):
        # Also if the session was begun on another machine, or the workspace has changed since.
        await app.check_mode(session_id)
    if isinstance(command, commands.AnswerQuestion) and session_id:
        asked = app.state(session_id).questions.get(command.question_id)
        if asked and asked.secret and command.answer not in (STORED, DECLINED):
            raise UsageProblem(
                f"An answer is kept in the log, so it cannot be a secret. Store {asked.secret} with "
                "`handrail credentials set`, or answer over HTTP with questions/ID/secret."
            )
    if isinstance(command, commands.SelectIntent):
        app.intents.check_selectable(command.intent_id)
    if isinstance(command, commands.SetModel):
        command = replace(command, model=await app.model_pool.check(command.model))
    try:
        commands.COMMAND.decode(to_json(command))
    except UnicodeEncodeError as error:
        raise UsageProblem(
            "This has characters that are not text (half of a surrogate pair). Leave them out."
        ) from error
    except ValidationError as error:
        raise UsageProblem(f"This command cannot be sent: {error}.") from error
    if isinstance(command, commands.SendMessage | commands.SetRoute):
        check_route(command.route, app.turn_factory.catalogue)
    if isinstance(command, commands.SendMessage) and (problem := too_many_images(command.images)):
        raise UsageProblem(f"{problem[:1].upper()}{problem[1:]} Send them in several messages.")
    return command


async def answer_with_secret(app: "App", session_id: str, question_id: str, secret: str) -> commands.Command:
    """Store what the user typed for a question that asks for a secret, and answer only that; empty: declined.

    It is on the disk encrypted before the answer is in the log, and nowhere else.
    """
    asked = app.state(session_id).questions.get(question_id)
    if asked is None or not asked.secret:
        raise UsageProblem("No secret is asked for (any more), so nothing was stored.")
    if secret:
        app.model_pool.credentials.set(asked.secret, secret)
    answer = commands.AnswerQuestion(question_id=question_id, answer=STORED if secret else DECLINED)
    return await app.send(session_id, answer)


def check_output_schema(schema: object) -> None:
    """Raises UsageProblem for what is not a JSON Schema that an answer can be checked by."""
    from handrail.models.reading.output_schema import schema_problem

    if problem := schema_problem(schema):
        raise UsageProblem(f"This is not a usable JSON Schema: {problem}.")
