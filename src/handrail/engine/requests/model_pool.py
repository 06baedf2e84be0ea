"""The models of a process: chosen once, connected once, closed together; and their secrets."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import DecodeError
from msgspec.json import decode

from handrail.config.credentials import MODEL, Credentials, check_key, find_credential
from handrail.config.layers import LoadedSettings
from handrail.config.open_file import open_file
from handrail.config.places import Places
from handrail.config.settings import password_in
from handrail.context.strategy import strategy_for
from handrail.models.connect import connect, preload_http
from handrail.models.model import Deadlines, Model, Request, UserTurn
from handrail.models.model_choice import (
    LocalServer,
    ModelChoice,
    RequestedModels,
    choose_model,
    find_local_servers,
    full_model_name,
)
from handrail.models.providers import all_connections
from handrail.models.structured_output import WayMemory
from handrail.protocol.errors import ConfigProblem, HandrailError, SchemaRefused
from handrail.sessions.session import Session
from handrail.tools.secrets import (
    Secret,
    Secrets,
    find_secrets,
    is_distinctive_secret,
    is_secret_variable,
    sign_in_secrets,
)
from handrail.workspace.sensitive_names import is_secret_name

if TYPE_CHECKING:
    from handrail.models.connect import Reachability
    from handrail.models.embedded.status import EmbeddedStatus

SIGN_IN = "/sign-in"
"""The end of a credential's name that is the sign-in at a source."""
PROBE_SECONDS = 20.0
PROBE_TOKENS = 32
PROBE_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
ENV_FILE = re.compile(r"\.env(\..+)?|.+\.env", re.IGNORECASE)
ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
    r"(?:\"([^\"\n]*)\"|'([^'\n]*)'|(.*?))(?:[ \t]+#.*)?[ \t\r]*$",
    re.MULTILINE,
)
"""The value may be quoted, and a comment may follow it."""
MAX_FILES = 20
MAX_BYTES = 64_000


class ModelPool:
    """Models by reference, for all sessions of this process."""

    def __init__(
        self,
        loaded: LoadedSettings,
        places: Places,
        environment: Mapping[str, str],
        flag: str,
        workspace: Path | None = None,
        *,
        try_again: bool = False,
    ) -> None:
        """`try_again`: what is remembered about servers is found out again."""
        self._remember = partial(WayMemory, places.data, trusted=not try_again)
        self._workspace = workspace
        self._loaded = loaded
        self._places = places
        self.credentials = Credentials(places, environment)
        self._learned: list[Secret] = []
        self._environment = environment
        self._flag = flag
        self._models: dict[str, Model] = {}
        self._found: ModelChoice | None = None

    async def choice(self, session: Session | None) -> ModelChoice:
        """The main model of a session and why; raises NoModel, which says what to do, when there is none."""
        settings = self._loaded.settings.models
        of_workspace = self._loaded.layer("models.main") == "workspace"
        requested = RequestedModels(
            flag=self._flag,
            session=session.state.models.get("main", "") if session else "",
            before=session.state.last_model if session else "",
            workspace=settings.main if of_workspace else "",
            user=settings.main if not of_workspace else "",
            fallbacks=settings.fallback.main,
        )
        if requested._replace(fallbacks=()) == RequestedModels():
            # Keys and servers are looked for once per process.
            choice = self._found = self._found or await self._choose(requested)
        else:
            choice = await self._choose(requested)
        preload_http(choice.reference)
        return choice

    def forget_flag(self) -> None:
        """Let the session's model replace the one from the command line."""
        self._flag = ""

    async def check(self, reference: str) -> str:
        """The full name of the model that a user names; raises UsageProblem where there is none."""
        return (await self._choose(RequestedModels(flag=reference))).reference

    async def models(self, session: Session | None) -> list[Model]:
        """The session's main model and its fallbacks, connected."""
        choice = await self.choice(session)
        models = [await self.named(choice.reference)]
        for reference in choice.fallbacks:
            with suppress(HandrailError):  # the doctor reports it; it must not stop a model that works
                models.append(await self.named(reference))
        return models

    def set_for(self, role: Literal["main", "fast", "audit"]) -> str:
        """The full name of the model that the settings name for a role; empty where they name none."""
        models = self._loaded.settings.models
        name = {"fast": models.fast, "audit": models.audit}.get(role, "") or models.main
        return full_model_name(name, all_connections(self._loaded.settings.connections)) if name else ""

    def reach(self, reference: str) -> "Reachability":
        """Where the model with this full name is reached, or why it cannot be; sends no request."""
        from handrail.models.connect import check_reachable

        return check_reachable(
            reference,
            environment=self._environment,
            settings=self._loaded.settings.connections,
            credential=self._credential,
        )

    async def fast(self, session: Session, otherwise: Model) -> Model:
        """The model for side calls, where one is set and can be used; else `otherwise`."""
        return await self.configured_fast(session) or otherwise

    async def configured_fast(self, session: Session) -> Model | None:
        """The model that is set for side calls; None where none is set or it cannot be used."""
        reference = session.state.models.get("fast") or self._loaded.settings.models.fast
        if reference:
            with suppress(HandrailError):  # a side call must not stop the turn
                return await self.named(await self.check(reference))
        return None

    async def configured_audit(self) -> Model | None:
        """The model that is set for second opinions; None where none is set."""
        reference = self._loaded.settings.models.audit
        return await self.named(await self.check(reference)) if reference else None

    async def unusable_fallbacks(self) -> list[tuple[str, str]]:
        found = []
        for reference in self._loaded.settings.models.fallback.main:
            try:
                await self.named(await self.check(reference))
            except HandrailError as problem:
                found.append((reference, str(problem)))
        return found

    async def probe(self, reference: str) -> Model:
        """The model after a short request, with a schema if it takes one; raises what a real one would."""
        model = await self.named(reference)
        await _probe_model(model)
        return model

    async def servers(self) -> list[LocalServer]:
        return await find_local_servers(all_connections(self._loaded.settings.connections))

    async def try_key(self, connection: str, key: str) -> None:
        """Send a short request with this key; raises what a real one would."""
        model = await connect(
            connection, environment={}, settings=self._loaded.settings.connections, credential=lambda _: key
        )
        try:
            await _probe_model(model)
        finally:
            await model.aclose()

    def keep_key(self, connection: str, key: str) -> None:
        """Store a key among the credentials."""
        self.credentials.set(f"{MODEL}{connection}", check_key(key.strip(), "this key"))

    def secrets(self) -> Secrets:
        """Values that are hidden: secrets of the environment, `.env` files and settings, and credentials."""
        connections = all_connections(self._loaded.settings.connections)
        variables = (name for each in connections.values() for name in each.key_env)
        keys = dict(_env_file_secrets(self._workspace)) if self._workspace else {}
        if is_distinctive_secret("", password := password_in(self._loaded.settings.database.url)):
            keys["database.url"] = password
        with suppress(ConfigProblem):  # reported when one of them is needed; none can be told before
            for name, value in self.credentials.values().items():
                keys[_secret_name(name)] = value
                keys |= {f"{name} {part.name}": part.value for part in _sign_in_parts(name, value)}
        return find_secrets(self._environment, variables, keys, self._learned)

    async def embedded(self) -> "EmbeddedStatus":
        """The state of the embedded model, whether or not it is in use."""
        from handrail.models.embedded.status import embedded_status

        return await embedded_status(self._environment)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()

    async def _choose(self, requested: RequestedModels) -> ModelChoice:
        return await choose_model(
            requested,
            environment=self._environment,
            settings=self._loaded.settings.connections,
            credential=self._credential,
        )

    async def named(self, reference: str) -> Model:
        """The model with this full name, connected; raises where that fails."""
        if reference not in self._models:
            model = await connect(
                reference,
                environment=self._environment,
                settings=self._loaded.settings.connections,
                credential=self._credential,
                remember=self._remember,
            )
            self._models[reference] = strategy_for(model.capabilities).adapt(model)
        return self._models[reference]

    def _credential(self, name: str) -> str | None:
        known = all_connections(self._loaded.settings.connections).get(name)
        variables = known.key_env if known else ()
        found = find_credential(self.credentials, name, variables, self._environment)
        return found.key if found else None


def _sign_in_parts(name: str, value: str) -> Iterator[Secret]:
    if name.endswith(SIGN_IN):
        with suppress(DecodeError):
            yield from sign_in_secrets(decode(value))


def _secret_name(credential: str) -> str:
    """What is shown instead of a credential's value."""
    return f"key of {credential.removeprefix(MODEL)}" if credential.startswith(MODEL) else credential


async def _probe_model(model: Model) -> None:
    deadlines = Deadlines(connect=5.0, first_byte=PROBE_SECONDS, silence=PROBE_SECONDS, whole=PROBE_SECONDS)
    schema = PROBE_SCHEMA if model.capabilities.schema_output else None
    text = 'Answer with this JSON object alone: {"ok": true}' if schema else "Say ok."
    request = Request(
        "", (UserTurn(text),), output_schema=schema, max_output_tokens=PROBE_TOKENS, deadlines=deadlines
    )
    while True:
        before = model.capabilities.structured
        with suppress(SchemaRefused):  # bounded by the ways there are
            async with aclosing(model.stream(request)) as parts:
                async for _ in parts:
                    pass
            if not schema or model.capabilities.structured == before:
                return


def _env_file_secrets(workspace: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError), os.scandir(workspace) as entries:
        found = (entry for entry in entries if ENV_FILE.fullmatch(entry.name) and is_secret_name(entry.name))
        for entry in islice(found, MAX_FILES):
            for name, *values in ASSIGNMENT.findall(_text(entry)):
                value = "".join(values)
                if is_secret_variable(name, value) and is_distinctive_secret(name, value):
                    yield f"{name} in {entry.name}", value


def _text(entry: os.DirEntry[str]) -> str:
    with suppress(OSError), open_file(entry.path, follow=False) as file:
        return file.read(MAX_BYTES).decode(errors="replace")
    return ""
