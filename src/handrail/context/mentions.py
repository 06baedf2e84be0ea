"""`@` in a message: paths and what was looked up, resolved by code to exact content, no model involved."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import HASH_DIGITS, AttachedImage, FileSeen
from handrail.workspace.files import Workspace, list_folder
from handrail.workspace.images import ImageFile

INTENT, TASK, DIFF, PROBLEMS = "intent:", "task:", "diff", "problems"
MENTION = re.compile(
    r"(?<![\w@/.])@(\"[^\"\n]+\"|https?://[^\s<>\"'`]+|(?:intent|task):[\w.-]+|[\w./~+-][\w./~+\-]*)"
)
ATTACHED_CAP = 48_000
"""Bytes of all mentioned files together; the model can read the others itself."""
MAX_IMAGES, MAX_IMAGE_BYTES = 10, 15_000_000


class Attachments(NamedTuple):
    """Content attached to a message, and the file versions it shows."""

    text: str
    files: tuple[FileSeen, ...]
    unattached: tuple[str, ...] = ()
    """For the user: mentions whose content is not attached, and why."""
    images: tuple[ImageFile, ...] = ()


class ResolvedMention(NamedTuple):
    fragment: str
    files: tuple[FileSeen, ...] = ()
    unattached: str = ""
    image: ImageFile | None = None


class LookedUp(NamedTuple):
    """What a mention that is no path stands for."""

    text: str = ""
    problem: str = ""
    """For the user: why there is no content."""
    paths: tuple[str, ...] = ()
    """Files to attach instead of a text."""


NOTHING_LOOKED_UP: Mapping[str, LookedUp] = MappingProxyType({})


def attach_mentions(
    message: str,
    workspace: Workspace,
    cap: int = ATTACHED_CAP,
    images: Sequence[AttachedImage] = (),
    also: Sequence[str] = (),
    *,
    looked_up: Mapping[str, LookedUp] = NOTHING_LOOKED_UP,
    chosen: Collection[str] = (),
) -> Attachments:
    """The content of what the message mentions; `images` are attached already.

    A word that names nothing is prose, unless it looks like a path or was `chosen` from a completion.
    """
    attached_names = {image.name for image in images}
    mentioned = [*mentioned_names(message), *also]
    named = [path for name in mentioned for path in (looked_up[name].paths if name in looked_up else (name,))]
    names = [name for name in dict.fromkeys(named) if name not in attached_names]
    attached = attach_files(names, workspace, cap, "user", chosen)
    attached = _with_looked_up(attached, looked_up, cap)
    found, left_out = attached.images, list[str]()
    while found and (problem := too_many_images([*images, *(each.image for each in found)])):
        left_out.append(f"{found[-1].image.name}: {problem}")
        found = found[:-1]
    shown = (*images, *(each.image for each in found))
    labels = [f"### {image.name} [picture: {image.described}]" for image in shown]
    labels += [f"[{each} Not attached.]" for each in left_out]
    return attached._replace(
        text="\n\n".join([*labels, attached.text] if attached.text else labels),
        images=found,
        unattached=(*attached.unattached, *left_out),
    )


def _with_looked_up(attached: Attachments, looked_up: Mapping[str, LookedUp], cap: int) -> Attachments:
    texts, told = [attached.text], list(attached.unattached)
    left = cap - len(attached.text.encode(errors="replace"))
    for name, found in looked_up.items():
        text = found.text
        if found.problem:
            text = f"[@{name[:200]}: {found.problem} Do not guess its content.]"
            told.append(f"{name[:200]}: {found.problem}")
        elif len(text.encode(errors="replace")) > left:
            text = text.encode(errors="replace")[: max(left, 0)].decode(errors="ignore")
            text += "\n[The rest did not fit.]"
            told.append(f"{name[:200]}: too long, so only its beginning is attached")
        left -= len(text.encode(errors="replace"))
        texts.append(text)
    return attached._replace(text="\n\n".join(filter(None, texts)), unattached=tuple(told))


def too_many_images(images: Sequence[AttachedImage]) -> str:
    """Why one message cannot have these images; empty when it can."""
    if len(images) > MAX_IMAGES:
        return f"at most {MAX_IMAGES} pictures go with one message."
    if sum(image.size for image in images) > MAX_IMAGE_BYTES:
        return f"the pictures of one message may have {MAX_IMAGE_BYTES:,} bytes together."
    return ""


def attach_files(
    names: Iterable[str],
    workspace: Workspace,
    cap: int,
    how: Literal["user", "auto"],
    chosen: Collection[str] = (),
) -> Attachments:
    """The content of files and folders, as many as fit."""
    found: list[ResolvedMention] = []
    left = cap
    for name in names:
        is_prose = name in (DIFF, PROBLEMS) or not (name in chosen or _is_like_path(name))
        mention = _attach_one(name, workspace, left, how, is_prose=is_prose)
        left -= len(mention.fragment.encode(errors="replace"))
        found.append(mention)
    return Attachments(
        "\n\n".join(mention.fragment for mention in found if mention.fragment),
        tuple(seen for mention in found for seen in mention.files),
        tuple(mention.unattached for mention in found if mention.unattached),
        tuple(mention.image for mention in found if mention.image),
    )


def mentioned_names(message: str) -> list[str]:
    """The names after `@`, once each, in order."""
    found = (match.group(1) for match in MENTION.finditer(message))
    names = (name[1:-1] if name.startswith('"') else name.rstrip(".,:;") for name in found)
    return [name for name in dict.fromkeys(names) if name]


def _is_like_path(name: str) -> bool:
    return "/" in name or bool(re.search(r"\.\w{1,8}$", name))


def _attach_one(
    name: str, workspace: Workspace, left: int, how: Literal["user", "auto"], *, is_prose: bool
) -> ResolvedMention:
    """`is_prose`: that the name is no file is no error."""
    try:
        place = workspace.resolve(name)
        if place.absolute.is_dir():
            listed = f"### {name}/\n{list_folder(workspace, place)}"
            return ResolvedMention(listed, unattached=f"{name}: a folder; the names in it are attached")
        if not place.inside or place.secret:
            fragment = f"[{name} was not attached: use the read tool, so that the user can be asked.]"
            why = "may hold secrets" if place.inside else "outside of this folder"
            why += "; you are asked if the model wants to read it"
            return ResolvedMention(fragment, unattached=f"{name}: {why}")
        if image := workspace.image(place):
            return ResolvedMention("", image=image)
        file = workspace.read(place)
    except (PathProblem, OSError) as problem:
        if is_prose:
            return ResolvedMention("")
        why = f"{problem.strerror}." if isinstance(problem, OSError) else str(problem)
        shown = name[:200]
        note = why if why.startswith(name) else f"{shown}: {why}"
        return ResolvedMention(f"[@{shown}: {why} Do not guess its content.]", unattached=note)
    size = len(file.data)
    if size > left:
        return ResolvedMention(
            f"[{file.path} ({size} bytes) did not fit: use the read tool.]",
            unattached=f"{file.path}: {size:,} bytes are too many to attach; the model can read parts of it",
        )
    seen = FileSeen(path=file.path, sha256=file.sha256, how=how, size=size)
    return ResolvedMention(f"### {file.path} [hash: {file.sha256[:HASH_DIGITS]}]\n{file.text}", (seen,))
