"""Which models answer in a session: chosen once, connected once, closed together."""

from collections.abc import Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from handrail.config.credentials import find_credential, save_credential
from handrail.config.layers import LoadedSettings
from handrail.config.places import Places
from handrail.engine.known_secrets import known_secrets
from handrail.models.base import Deadlines, Model, Request, UserTurn
from handrail.models.choice import Choice, Server, Wishes, choose, find_servers, full_name
from handrail.models.connect import connect, get_ready
from handrail.models.connections import connections
from handrail.protocol.errors import HandrailError
from handrail.sessions.handle import Session
from handrail.tools.secrets import Secrets

if TYPE_CHECKING:
    from handrail.models.embedded.report import Report
    from handrail.models.reach import Reach

PROBE_SECONDS = 20.0


class Answerers:
    """Models by reference, for all sessions of this process."""

    def __init__(
        self,
        loaded: LoadedSettings,
        places: Places,
        environment: Mapping[str, str],
        flag: str,
        workspace: Path | None = None,
    ) -> None:
        self._workspace = workspace
        self._loaded = loaded
        self._places = places
        self._environment = environment
        self._flag = flag
        self._models: dict[str, Model] = {}
        self._found: Choice | None = None

    async def choice(self, session: Session | None) -> Choice:
        """The main model of a session and why; raises NoModel, with the ways out, when there is none."""
        wishes = self._wishes(session)
        if not (wishes.flag or wishes.session or wishes.before or wishes.workspace or wishes.user):
            # Looking for keys and servers is done once: an answer found stays found in this process.
            choice = self._found = self._found or await self._choose(wishes)
        else:
            choice = await self._choose(wishes)
        get_ready(choice.reference)
        return choice

    def forget_flag(self) -> None:
        """From now on what the session says counts, not what the command line said."""
        self._flag = ""

    async def check(self, reference: str) -> str:
        """The full name of a model that a user wants; raises UsageProblem where it cannot be one."""
        choice = await self._choose(Wishes(flag=reference))
        return choice.reference

    async def models(self, session: Session | None) -> list[Model]:
        """The session's main model, ready to be asked, and after it the fallbacks."""
        choice = await self.choice(session)
        models = [await self._connected(choice.reference)]
        for reference in choice.fallbacks:
            with suppress(HandrailError):  # the doctor tells of it; it must not stop a model that works
                models.append(await self._connected(reference))
        return models

    async def named(self, reference: str) -> Model:
        """The model that somebody names in full, ready to be asked; raises where it cannot be."""
        return await self._connected(reference)

    def set_for(self, role: Literal["main", "fast"]) -> str:
        """The full name of the model that the settings have for a role; empty where they name none."""
        models = self._loaded.settings.models
        wished = (models.fast if role == "fast" else "") or models.main
        return full_name(wished, connections(self._loaded.settings.connections)) if wished else ""

    def reach(self, reference: str) -> "Reach":
        """Where a model that is named in full answers, or why it cannot; nothing is asked for it."""
        from handrail.models.reach import reach

        return reach(
            reference,
            environment=self._environment,
            settings=self._loaded.settings.connections,
            credential=self._credential,
        )

    async def fast(self, session: Session, otherwise: Model) -> Model:
        """The model for short side work, where one is set and can be used; else the other."""
        reference = session.state.models.get("fast") or self._loaded.settings.models.fast
        if reference:
            with suppress(HandrailError):  # side work must not stop the work
                return await self._connected(await self.check(reference))
        return otherwise

    async def unusable_fallbacks(self) -> list[tuple[str, str]]:
        """Fallbacks of the settings that would not help, each with the reason."""
        found = []
        for reference in self._loaded.settings.models.fallback.main:
            try:
                await self._connected(await self.check(reference))
            except HandrailError as problem:
                found.append((reference, str(problem)))
        return found

    async def probe(self, reference: str) -> None:
        """Ask a model for one word; raises what a real question would."""
        await _probe(await self._connected(reference))

    async def servers(self) -> list[Server]:
        """The servers on this machine that answer now."""
        return await find_servers(connections(self._loaded.settings.connections))

    async def try_key(self, connection: str, key: str) -> None:
        """Ask the connection's model for one word with this key; raises what a real question would."""
        model = await connect(
            connection,
            environment={},
            settings=self._loaded.settings.connections,
            credential=lambda _: key,
        )
        try:
            await _probe(model)
        finally:
            await model.aclose()

    def keep_key(self, connection: str, key: str) -> None:
        """Keep a key for later starts, readable by this user alone."""
        save_credential(self._places, connection, key)

    def secrets(self) -> Secrets:
        """What no model and no command gets to know."""
        connections = self._loaded.settings.connections
        return known_secrets(self._places, self._environment, connections, self._workspace)

    async def embedded(self) -> "Report":
        """How the model of our own is, whether or not it is the one that answers."""
        from handrail.models.embedded.report import report

        return await report(self._environment)

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()

    def _wishes(self, session: Session | None) -> Wishes:
        settings, layer = self._loaded.settings.models, self._loaded.layer("models.main")
        of_workspace = layer == "workspace"
        return Wishes(
            flag=self._flag,
            session=session.state.models.get("main", "") if session else "",
            before=session.state.last_model if session else "",
            workspace=settings.main if of_workspace else "",
            user=settings.main if not of_workspace else "",
            fallbacks=settings.fallback.main,
        )

    async def _choose(self, wishes: Wishes) -> Choice:
        return await choose(
            wishes,
            environment=self._environment,
            settings=self._loaded.settings.connections,
            credential=self._credential,
        )

    async def _connected(self, reference: str) -> Model:
        if reference not in self._models:
            self._models[reference] = await connect(
                reference,
                environment=self._environment,
                settings=self._loaded.settings.connections,
                credential=self._credential,
            )
        return self._models[reference]

    def _credential(self, name: str) -> str | None:
        known = connections(self._loaded.settings.connections).get(name)
        variables = known.key_env if known else ()
        found = find_credential(self._places, name, variables, environ=self._environment)
        return found.key if found else None


async def _probe(model: Model) -> None:
    deadlines = Deadlines(connect=5.0, first_byte=PROBE_SECONDS, silence=PROBE_SECONDS, whole=PROBE_SECONDS)
    request = Request("", (UserTurn("Say ok."),), max_output_tokens=16, deadlines=deadlines)
    async with aclosing(model.stream(request)) as parts:
        async for _ in parts:
            pass
