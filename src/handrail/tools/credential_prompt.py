"""The credential_prompt tool: the user types a missing secret, and the model learns only that it is stored.

The secret never passes through the session: the interface that asks stores it among the credentials, and
sends `STORED` as its answer.
"""

import re
from typing import Annotated, Protocol

from msgspec import Meta

from handrail.protocol.errors import ToolRefused
from handrail.protocol.values import DECLINED, STORED, Value
from handrail.tools.secrets import SECRET_VARIABLE
from handrail.tools.tool import CallContext, Outcome, Question, Tool, tool_refused

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
OTHER = re.compile(r"source/[A-Za-z0-9_][A-Za-z0-9_.@:/-]{0,90}")


class StoredCredentials(Protocol):
    def get(self, name: str) -> str | None: ...


class CredentialArguments(Value):
    name: Annotated[str, Meta(max_length=100, description="a variable, as GITHUB_TOKEN")]
    why: Annotated[str, Meta(min_length=1, max_length=500)]


class CredentialPrompt(Tool[CredentialArguments]):
    name = "credential_prompt"
    description = "Let the user type a missing secret that you never see; `run` with secrets=[name] gets it."
    action = "ask"
    arguments = CredentialArguments

    def __init__(self, credentials: StoredCredentials) -> None:
        self._credentials = credentials

    def summary(self, arguments: CredentialArguments, work: CallContext) -> str:
        return f"{arguments.name}: {' '.join(arguments.why.split())}"

    def question(self, arguments: CredentialArguments) -> Question:
        if not (is_secret_environment(arguments.name) or OTHER.fullmatch(arguments.name)):
            raise wrong_name(self.name, arguments.name)
        why = " ".join(arguments.why.split())
        text = f"The model asks for a secret, {arguments.name}, which it will not see: {why}"
        return Question(text, secret=arguments.name)

    async def run(self, arguments: CredentialArguments, work: CallContext) -> Outcome:
        stored = self._credentials.get(arguments.name) if work.answer == STORED else None
        if stored is None:
            return Outcome(DECLINED, f"{DECLINED}: the user gave no {arguments.name}. Go on without it.")
        work.secrets.learn(arguments.name, stored)
        return Outcome(STORED, f"{STORED} as {arguments.name}")


def is_secret_environment(name: str) -> bool:
    """Whether a credential of this name can be a command's variable: its name says that it is a secret.

    So it can be none that changes what runs, such as `PATH` or `LD_PRELOAD`.
    """
    return bool(
        VARIABLE.fullmatch(name) and (SECRET_VARIABLE.search(name) or name.endswith(("_URL", "_URI")))
    )


def wrong_name(tool: str, name: str) -> ToolRefused:
    message = (
        f"{name[:100]!r} is not the name of a secret. Use a variable in capitals that says what it is, such "
        "as GITHUB_TOKEN or SHOP_DATABASE_URL."
    )
    return tool_refused(tool, "invalid_arguments", message)


def secret_environment(
    credentials: StoredCredentials, names: tuple[str, ...], work: CallContext
) -> dict[str, str]:
    """The variables of a command that gets these credentials; raises ToolRefused if one is not stored."""
    found = {}
    for name in names:
        if not is_secret_environment(name):
            raise wrong_name("run", name)
        value = credentials.get(name)
        if value is None:
            message = f"There is no stored {name}. Ask the user for it with {CredentialPrompt.name}."
            raise tool_refused("run", "invalid_arguments", message)
        work.secrets.learn(name, value)
        found[name] = value
    return found
