"""HTML by construction: text is always escaped, and only this module makes markup.

h("a", "see ", h("b", name), class_="link", href=address)
"""

from collections.abc import Iterable
from html import escape
from typing import Union

Child = Union[str, "Html", None, Iterable["Child"]]
Attribute = str | int | float | bool | None

VOID_TAGS = {"br", "hr", "img", "input", "link", "meta"}
ADDRESSES = ("href", "src", "action")
SAFE_STARTS = ("/", "#", "?", "http://", "https://", "mailto:")
FORBIDDEN_ATTRIBUTES = ("style", "srcdoc", "formaction")


class Html(str):
    """Markup. Adding it to other text gives plain text again, which is escaped where it is used."""

    __slots__ = ()


EMPTY = Html("")


def h(tag: str, *children: Child, **attributes: Attribute) -> Html:
    """An element; names of attributes are written `class_`, `data_id`, `aria_label`."""
    start = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    if tag in VOID_TAGS:
        return Html(start)
    if tag in ("script", "style") and any(children):
        raise ValueError("scripts and styles are files")
    return Html(f"{start}{''.join(_parts(children))}</{tag}>")


def join(*children: Child) -> Html:
    """Several pieces one after the other."""
    return Html("".join(_parts(children)))


def page(root: Html) -> str:
    return f"<!doctype html>{root}"


def safe_address(address: str) -> str:
    """The address, or an empty one where following it could run something."""
    plain = "".join(character for character in address if character > " ")
    return address.strip() if plain.lower().startswith(SAFE_STARTS) else ""


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield escape(child)
        elif child is not None:
            yield from _parts(child)


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if name.startswith("on") or name in FORBIDDEN_ATTRIBUTES:
        raise ValueError(f"the attribute {name} could run something")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = safe_address(str(value)) if name in ADDRESSES else str(value)
    return f' {name}="{escape(text)}"'
