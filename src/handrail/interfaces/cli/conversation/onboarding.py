"""The first screen when no model is ready: paste a key, use a local server, or download a model."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import anyio
from prompt_toolkit.input import create_input
from prompt_toolkit.keys import Keys as Named

from handrail import __version__
from handrail.app.app import App
from handrail.app.models import LOCAL_PORTS, SmallModel, install_runtime, provider_of_key
from handrail.config.toml_edit import save_setting
from handrail.interfaces.cli.commands.setup.model import download_with_progress, megabytes
from handrail.interfaces.cli.conversation.welcome import short_path
from handrail.interfaces.cli.render.styles import Line, Piece, line, wrap
from handrail.interfaces.cli.render.tool_calls import note
from handrail.interfaces.cli.terminal import (
    print_lines,
    print_text,
    program_name,
    redraw,
    terminal_width,
    use_colour,
)
from handrail.protocol.errors import Authenticate, ConfigProblem, FetchStopped, ModelProblem, NoModel

LEAVE = "leave"
ENTER = "enter"
SPECIAL_KEYS: dict[str, str] = {
    Named.ControlC: LEAVE,
    Named.ControlD: LEAVE,
    Named.ControlM: ENTER,
    Named.ControlJ: ENTER,
}
ERASE_KEYS = (Named.ControlH, Named.ControlU)


class KeyReader:
    """Reads single keys, in raw mode while the block lasts."""

    def __init__(self) -> None:
        self._input = create_input()
        self._waiting: deque[tuple[str, str]] = deque()
        self._raw = ExitStack()

    def __enter__(self) -> "KeyReader":
        self._raw.enter_context(self._input.raw_mode())
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave raw mode for a while, so that Ctrl-C is a signal."""
        self._raw.close()
        try:
            yield
        finally:
            self._raw.enter_context(self._input.raw_mode())

    async def next(self) -> str:
        """The next key: its character, ENTER, or LEAVE (Ctrl-C, Ctrl-D, a closed terminal)."""
        while True:
            key, data = await self._pressed()
            if key in SPECIAL_KEYS:
                return SPECIAL_KEYS[key]
            if data.isprintable():
                return data

    async def secret(self, show_length: Callable[[int], None]) -> str | None:
        """What is typed or pasted until Enter; None for LEAVE. Only its length is shown."""
        typed = ""
        while True:
            show_length(len(typed))
            key, data = await self._pressed()
            if key in SPECIAL_KEYS:
                return typed if SPECIAL_KEYS[key] == ENTER else None
            if key in ERASE_KEYS:
                typed = typed[:-1] if key == Named.ControlH else ""
            elif data.strip().isprintable():
                typed += data.strip()  # a paste may come as one, with its line end

    async def _pressed(self) -> tuple[str, str]:
        while not self._waiting:
            ready = anyio.Event()
            with self._input.attach(ready.set):
                await ready.wait()
            self._waiting += [(press.key, press.data) for press in self._input.read_keys()]
            if self._input.closed:
                self._waiting.append((Named.ControlD, ""))
        return self._waiting.popleft()


LABEL_COLUMNS = 25
PROVIDER_KEYS = {"a": "anthropic", "o": "openai", "x": "xai", "r": "openrouter", "g": "gemini"}
MAX_LISTED = 9


class Onboarding:
    """Asks until there is a model to answer, or the user leaves."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._small_model = SmallModel()
        self._colour = use_colour(sys.stdout, app.settings.display)
        self._width = terminal_width(sys.stdout)

    async def choose(self) -> None:
        """Return when a model can answer; raises NoModel where the user leaves without one."""
        self._say([*self._screen(), ()])
        ways = {"k": self._use_key, "s": self._use_server, "d": self._download}
        with KeyReader() as keys:
            while True:
                self._ask("k, s or d; Ctrl-C leaves")
                pressed = await keys.next()
                self._answered(pressed if pressed in ways else "")
                if pressed == LEAVE:
                    raise NoModel(f"No model was chosen, nothing was changed. `{program_name()}` asks again.")
                if pressed in ways and await ways[pressed](keys):
                    break
        self._say([()])

    def _screen(self) -> list[Line]:
        model = self._small_model
        some, size = model.downloaded, f"{model.size / 1e9:.1f} GB"
        more = f"; {megabytes(some)} of {megabytes(model.size)} MB are already here" if some else ""
        servers = "none answers now: start Ollama, llama.cpp, LM Studio or vLLM, then press s"
        small = f"{size}, once; it answers on this machine, without key and network{more}"
        left = line(("bold", "handrail"), f" {__version__}  {short_path(self._app.workspace.root)}")
        why = line("There is no model to answer yet: no key was found, and no server on this machine.")
        rows: list[Line] = [*wrap(left, self._width, "  "), *wrap(why, self._width), ()]
        for key, label, meaning in (
            ("k", "use a key", "paste it here; it is stored encrypted, for you alone"),
            ("s", "use a local server", servers),
            ("d", "download a small model", small),
        ):
            head = line("  ", ("accent", key), f"  {label:<{LABEL_COLUMNS}}")
            rows += wrap((*head, Piece("dim", meaning)), self._width, " " * (LABEL_COLUMNS + 5))
        return rows

    async def _use_key(self, keys: KeyReader) -> bool:
        self._note("key", "paste it and press Enter; it is not shown. Enter alone goes back.")
        key = await keys.secret(lambda length: self._ask(f"key   {length} characters" if length else "key"))
        self._answered("")
        if not key:
            return False
        owner = provider_of_key(key) or await self._owner(keys)
        if not owner:
            return False
        self._note("checking", f"with one short question to {owner}")
        try:
            await self._app.model_pool.try_key(owner, key)
            self._note("key", "works", "good")
        except (Authenticate, ConfigProblem) as refused:
            self._note("refused", f"{refused} It was not stored.", "bad")
            return False
        except ModelProblem as problem:
            self._note("key", f"could not be checked: {problem}", "bold")
        self._app.model_pool.keep_key(owner, key)
        self._note("stored", self._app.model_pool.credentials.where())
        return True

    async def _owner(self, keys: KeyReader) -> str:
        self._note("key", "its format does not show which provider it is for")
        self._ask("   ".join(f"{key} {name}" for key, name in PROVIDER_KEYS.items()))
        owner = PROVIDER_KEYS.get((await keys.next()).lower(), "")
        self._answered(owner)
        return owner

    async def _use_server(self, keys: KeyReader) -> bool:
        servers = await self._app.model_pool.servers()
        found = [reference for server in servers for reference in server.references]
        for server in servers:
            if not server.models:
                text = f"{server.name} answers, but has no model yet: load one into it, then press s"
                self._note("server", text)
        if not servers:
            ports = ", ".join(f"{name} at port {port}" for name, port in LOCAL_PORTS.items())
            self._note("server", f"none answers. Tried: {ports}. Start one, then press s.")
        if not found:
            return False
        chosen = found[0] if len(found) == 1 else await self._one_of(found, keys)
        if chosen and chosen != found[0]:
            save_setting(self._app.places, "models.main", chosen)
            self._note("model", f"{chosen} is your default now, in {short_path(self._app.places.settings)}")
        return bool(chosen)

    async def _one_of(self, found: list[str], keys: KeyReader) -> str:
        for number, reference in enumerate(found[:MAX_LISTED], start=1):
            self._say(wrap(line("  ", ("accent", str(number)), f"  {reference}"), self._width, " " * 5))
        if len(found) > MAX_LISTED:
            more = len(found) - MAX_LISTED
            self._note("", f"and {more} more: `{program_name()} model CONNECTION/NAME` chooses one")
        self._ask(f"1 to {min(len(found), MAX_LISTED)}; any other key goes back")
        pressed = await keys.next()
        number = int(pressed) if pressed.isdecimal() else 0
        chosen = found[number - 1] if 0 < number <= min(len(found), MAX_LISTED) else ""
        self._answered(chosen)
        return chosen

    async def _download(self, keys: KeyReader) -> bool:
        if not self._small_model.has_runtime:
            self._note("first", f"install the library that runs it: {install_runtime()}", "bold")
            return False
        try:
            with keys.paused():
                path = await download_with_progress(self._small_model)
        except FetchStopped as stopped:
            self._note("download", str(stopped), "bad")
            return False
        self._note("download", f"done and checked; the file is in {short_path(path.parent)}")
        return True

    def _ask(self, words: str) -> None:
        redraw(line(("dim", f"  {words}"), ("accent", " > ")), colour=self._colour)

    def _answered(self, words: str) -> None:
        print_text("" if words in (ENTER, LEAVE) else words)

    def _note(self, name: str, text: str, style: str = "dim") -> None:
        self._say(note(name, text, self._width, style))

    def _say(self, rows: list[Line]) -> None:
        print_lines(rows, colour=self._colour)
