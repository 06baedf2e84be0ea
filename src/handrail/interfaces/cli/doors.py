"""The first screen where no model is ready: three doors to one, by one key each."""

import sys
from typing import TYPE_CHECKING

from handrail import __version__
from handrail.config.edit import save_setting
from handrail.interfaces.cli.fetching import fetch_shown, megabytes
from handrail.interfaces.cli.keys import ENTER, LEAVE, Keys
from handrail.interfaces.cli.program import program
from handrail.interfaces.cli.styles import ACCENT, BAD, BOLD, DIM, GOOD, Line, Piece, ansi, line, wrap
from handrail.interfaces.cli.terminal import takes_colour, width_of
from handrail.interfaces.cli.tool_lines import note
from handrail.interfaces.cli.welcome import short
from handrail.models.connections import LOCAL_PORTS
from handrail.models.embedded.files import DEFAULT, models_folder
from handrail.models.embedded.offer import INSTALL, has_runtime
from handrail.models.embedded.partial import bytes_so_far
from handrail.models.key_shapes import owner_of
from handrail.protocol.errors import Authenticate, ConfigProblem, FetchStopped, ModelProblem, NoModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handrail.app import App

LABEL_COLUMNS = 25
OWNERS = {"a": "anthropic", "o": "openai", "x": "xai", "r": "openrouter", "g": "gemini"}
MOST_LISTED = 9


class Doors:
    """Asks until there is a model to answer, or the user leaves."""

    def __init__(self, app: "App", environ: "Mapping[str, str]") -> None:
        self._app = app
        self._environ = environ
        self._colour = takes_colour(sys.stdout, app.settings.display, environ)
        self._width = width_of(sys.stdout)

    async def choose(self) -> None:
        """Come back when a model can answer. NoModel, with a sentence, where the user leaves without one."""
        self._say([*self._screen(), ()])
        doors = {"k": self._use_key, "s": self._use_server, "d": self._download}
        with Keys() as keys:
            while True:
                self._ask("k, s or d; Ctrl-C leaves")
                pressed = await keys.next()
                self._answered(pressed if pressed in doors else "")
                if pressed == LEAVE:
                    raise NoModel(f"No model was chosen, and nothing was changed. `{program()}` asks again.")
                if pressed in doors and await doors[pressed](keys):
                    break
        self._say([()])

    def _screen(self) -> list[Line]:
        places = self._app.places
        some, all_of_it = bytes_so_far(DEFAULT, models_folder(self._environ)), megabytes(DEFAULT.size)
        more = f"; {megabytes(some)} of {all_of_it} MB are here already" if some else ""
        servers = "none answers now: start Ollama, llama.cpp, LM Studio or vLLM, then press s"
        small = (
            f"{DEFAULT.size / 1e9:.1f} GB, once; it answers on this machine, without key and network{more}"
        )
        left = line((BOLD, "handrail"), f" {__version__}  {short(self._app.workspace.root)}")
        why = line("There is no model to answer yet: no key was found, and no server on this machine.")
        rows: list[Line] = [*wrap(left, self._width, "  "), *wrap(why, self._width), ()]
        for key, label, meaning in (
            ("k", "use a key", f"paste it here; it is kept in {short(places.credentials)}, for you alone"),
            ("s", "use a local server", servers),
            ("d", "download a small model", small),
        ):
            head = line("  ", (ACCENT, key), f"  {label:<{LABEL_COLUMNS}}")
            rows += wrap((*head, Piece(DIM, meaning)), self._width, " " * (LABEL_COLUMNS + 5))
        return rows

    # A key

    async def _use_key(self, keys: Keys) -> bool:
        self._note("key", "paste it and press Enter; it is not shown, and an empty one goes back")
        key = await keys.secret(lambda length: self._ask(f"key   {length} characters" if length else "key"))
        self._answered("")
        if not key:
            return False
        owner = owner_of(key) or await self._owner(keys)
        if not owner:
            return False
        self._note("checking", f"with one short question to {owner}")
        try:
            await self._app.answerers.try_key(owner, key)
            self._note("key", "works", GOOD)
        except (Authenticate, ConfigProblem) as refused:
            self._note("refused", f"{refused} It is not kept.", BAD)
            return False
        except ModelProblem as problem:
            self._note("key", f"could not be checked: {problem}", BOLD)
        self._app.answerers.keep_key(owner, key)
        self._note("kept", f"in {short(self._app.places.credentials)}, for you alone")
        return True

    async def _owner(self, keys: Keys) -> str:
        self._note("key", "its shape does not tell whose it is")
        self._ask("   ".join(f"{key} {name}" for key, name in OWNERS.items()))
        owner = OWNERS.get((await keys.next()).lower(), "")
        self._answered(owner)
        return owner

    # A server

    async def _use_server(self, keys: Keys) -> bool:
        servers = await self._app.answerers.servers()
        empty = [server.name for server in servers if not server.models]
        found = [reference for server in servers for reference in server.references]
        for name in empty:
            self._note("server", f"{name} answers, and has no model yet: load one into it, then press s")
        if not servers:
            ports = ", ".join(f"{name} at port {port}" for name, port in LOCAL_PORTS.items())
            self._note("server", f"none answers. Looked for: {ports}. Start one, then press s.")
        if not found:
            return False
        chosen = found[0] if len(found) == 1 else await self._one_of(found, keys)
        if chosen and chosen != found[0]:
            save_setting(self._app.places, "models.main", chosen)
            self._note("model", f"{chosen} is your default now, in {short(self._app.places.settings)}")
        return bool(chosen)

    async def _one_of(self, found: list[str], keys: Keys) -> str:
        for number, reference in enumerate(found[:MOST_LISTED], start=1):
            self._say(wrap(line("  ", (ACCENT, str(number)), f"  {reference}"), self._width, " " * 5))
        if len(found) > MOST_LISTED:
            self._note("", f"and {len(found) - MOST_LISTED} more, for `{program()} model CONNECTION/NAME`")
        self._ask(f"1 to {min(len(found), MOST_LISTED)}; any other key goes back")
        pressed = await keys.next()
        number = int(pressed) if pressed.isdecimal() else 0
        chosen = found[number - 1] if 0 < number <= min(len(found), MOST_LISTED) else ""
        self._answered(chosen)
        return chosen

    # A model of our own

    async def _download(self, keys: Keys) -> bool:
        if not has_runtime():
            self._note("first", f"the library that runs it has to be installed: {INSTALL}", BOLD)
            return False
        try:
            with keys.given_back():
                path = await fetch_shown(DEFAULT, models_folder(self._environ))
        except FetchStopped as stopped:
            self._note("download", str(stopped), BAD)
            return False
        self._note("download", f"done and checked; the file is in {short(path.parent)}")
        return True

    # Writing

    def _ask(self, words: str) -> None:
        text = ansi(line((DIM, f"  {words}"), (ACCENT, " > ")), colour=self._colour)
        print(f"\r\x1b[K{text}", end="", flush=True)

    def _answered(self, words: str) -> None:
        print("" if words in (ENTER, LEAVE) else words, flush=True)

    def _note(self, name: str, text: str, style: str = DIM) -> None:
        self._say(note(name, text, self._width, style))

    def _say(self, rows: list[Line]) -> None:
        for row in rows:
            print(ansi(row, colour=self._colour), flush=True)
