"""Help with writing a message: completion of commands, agents and paths; pasted images."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from handrail.app.app import App
from handrail.app.files import complete_path, find_below
from handrail.interfaces.cli.render.styles import one_line
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import AttachedImage

QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"")
MAX_PATH_CHARS = 4_096


def dropped_file(text: str) -> Path | None:
    """The file, where the pasted text is just the path of one."""
    word = text.strip()
    if len(word) > MAX_PATH_CHARS or "\n" in word:
        return None
    if quoted := QUOTED.fullmatch(word):
        word = quoted[1] or quoted[2]
    elif word.startswith("file://"):
        word = unquote(urlsplit(word).path)
    else:
        if re.search(r"(?<!\\)\s", word):
            return None
        word = re.sub(r"\\(.)", r"\1", word)
    path = Path(word)
    try:
        return path if path.is_absolute() and path.is_file() else None
    except (OSError, ValueError):
        return None


class PastedImages:
    """Images that were dropped or pasted into the message, by the mentions that stand for them."""

    def __init__(self, app: App) -> None:
        self._images = app.images
        self._named: dict[str, AttachedImage] = {}

    def dropped(self, text: str) -> str:
        """The text to insert: a mention where an image file was dropped, from any folder."""
        try:
            file = dropped_file(text)
            return self._mention(self._images.named(file)) if file else text
        except UsageProblem:
            return text

    async def pasted(self) -> str:
        """A mention of the image in the clipboard; empty where there is none."""
        image = await self._images.in_clipboard()
        return self._mention(image) if image else ""

    def mentioned(self, text: str) -> tuple[AttachedImage, ...]:
        return tuple(image for mention, image in self._named.items() if mention in text)

    def _mention(self, image: AttachedImage) -> str:
        mention = f'@"{image.name}"'
        self._named[mention] = image
        return f"{mention} "


MENTION = re.compile(r"(?:^|(?<=\s))@(\"[^\"\n]*|[^\s\"]*)$")
UNQUOTED = re.compile(r"[\w./~+-]*")
SLASH_WORD = re.compile(r"^/([a-z0-9-]*)$")


class MessageCompleter(Completer):
    def __init__(
        self,
        workspace: Path,
        commands: Callable[[], Mapping[str, str]],
        agents: Callable[[], Iterable[str]] = tuple,
        names: Callable[[str], Iterable[tuple[str, str]]] = lambda _: (),
    ) -> None:
        """`names`: what else can be mentioned, each with what it is."""
        self._workspace = workspace
        self._commands = commands
        self._agents = agents
        self._names = names
        self._offered: set[str] = set()

    def chosen(self, text: str) -> tuple[str, ...]:
        """Mentions in the text that were offered, other than agents."""
        return tuple(name for name in self._offered if f"@{name}" in text or f'@"{name}"' in text)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if slash := SLASH_WORD.match(before):
            for name, meaning in self._commands().items():
                if name.startswith(slash[1]):
                    yield Completion(name, -len(slash[1]), f"/{name}", display_meta=meaning)
        elif mention := MENTION.search(before):
            typed = mention[1].removeprefix('"')
            if mention.start() == 0:
                named = [name for name in dict.fromkeys(self._agents()) if name.startswith(typed)]
                yield from (
                    Completion(name, -len(typed), one_line(f"@{name}"), display_meta="agent")
                    for name in named
                )
            found = list(complete_path(self._workspace, typed)) or find_below(self._workspace, typed)
            for path in found:
                # A folder's quotes stay open, for what follows.
                quoted = f'"{path}' if path.endswith("/") else f'"{path}"'
                text = path if UNQUOTED.fullmatch(path) else quoted
                self._offered.add(path)
                yield Completion(text, -len(mention[1]), display=one_line(path))
            for name, note in self._names(typed) if mention[1] == typed else ():
                shown = one_line(f"@{name}")
                self._offered.add(name)
                yield Completion(name, -len(typed), shown, display_meta=one_line(note))
