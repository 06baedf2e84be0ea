"""Blocks: the pieces of a conversation that the page adds or replaces one by one, each by its id."""

from collections.abc import Iterator
from typing import NamedTuple

from handrail.interfaces.cli.render.styles import Line
from handrail.interfaces.web.html import EMPTY, Html, h, join

ROOT = "log"
"""The id of the element that holds all blocks."""
SIGNS = {"ok": "✓", "bad": "✕", "wait": "!", "run": "›", "off": "–", "done": "✓"}  # noqa: RUF001


class Block(NamedTuple):
    """One element. A block with a `tag` holds other blocks, and only its attributes change later."""

    id: str
    parent: str
    html: Html = EMPTY
    tag: str = ""
    classes: str = ""
    open: bool = False

    def element(self, children: Html = EMPTY) -> Html:
        if not self.tag:
            return self.html
        opened = self.open if self.tag == "details" else None
        return h(self.tag, children, id=self.id, class_=self.classes, open=opened)


class BlockTree:
    """All blocks so far, in order; a later block of the same id replaces the earlier one in its place."""

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._keeps_html = True

    def put(self, block: Block) -> Block:
        self._blocks[block.id] = block if self._keeps_html else block._replace(html=EMPTY)
        return block

    def forget_html(self) -> None:
        """Keep only where blocks are: a stream that is open for days must not grow by what it sent."""
        self._keeps_html = False
        self._blocks = {key: block._replace(html=EMPTY) for key, block in self._blocks.items()}

    def get(self, block_id: str) -> Block | None:
        return self._blocks.get(block_id)

    def drop_children(self, block_id: str) -> None:
        for key in [key for key, block in self._blocks.items() if block.parent == block_id]:
            del self._blocks[key]

    def html(self) -> Html:
        children: dict[str, list[Block]] = {}
        for block in self._blocks.values():
            children.setdefault(block.parent, []).append(block)

        def build(block: Block) -> Html:
            return block.element(join(*map(build, children.get(block.id, ()))))

        return join(*map(build, children.get(ROOT, ())))


def dot(state: str, words: str) -> Html:
    """A coloured sign; the words say the same to those who do not see it."""
    return h("span", SIGNS[state], class_=f"dot {state}", role="img", aria_label=words, title=words)


def note_rows(lines: list[Line]) -> Iterator[Html]:
    """Lines as the terminal shows them: a name, then text."""
    for line in lines:
        pieces = [piece for piece in line if piece.text.strip()]
        if not pieces:
            continue
        named = len(pieces) > 1 and pieces[0].style == "dim"
        label = h("span", pieces[0].text.strip() if named else "", class_="name")
        rest = pieces[1:] if named else pieces
        texts = [h("span", piece.text, class_=f"t-{piece.style}" if piece.style else None) for piece in rest]
        yield h("div", label, h("span", *texts, class_="words"), class_="note")


def notes(block_id: str, parent: str, lines: list[Line]) -> list[Block]:
    rows = list(note_rows(lines))
    return [Block(block_id, parent, h("div", *rows, id=block_id, class_="notes"))] if rows else []


def clock(since: float) -> Html:
    """A running clock: the page counts on from here."""
    return h("span", "", class_="clock soft", data_since=f"{since:.3f}")


def button(
    words: str, act: str, *, class_: str = "", key: str = "", label: str = "", **data: str | int
) -> Html:
    """A button that the page's script knows what to do with, by `act`."""
    return h(
        "button",
        words,
        h("kbd", key) if key else None,
        type="button",
        class_=class_ or None,
        aria_label=label or None,
        data_act=act,
        data_key=key or None,
        **{f"data_{name}": value for name, value in data.items()},
    )
