"""`@path` in a message: resolved by code to exact content, no model involved."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from handrail.protocol.errors import PathProblem
from handrail.protocol.values import SHOWN_DIGITS, AttachedImage, FileSeen
from handrail.workspace.files import Workspace
from handrail.workspace.images import ImageFile
from handrail.workspace.listing import list_folder

MENTION = re.compile(r"(?<![\w@/.])@(\"[^\"\n]+\"|[\w./~+-][\w./~+\-]*)")
NAME_CAP = 200
ATTACHED_CAP = 48_000
"""Bytes of all mentioned files together; what does not fit is named, for the model to read itself."""
MOST_IMAGES, MOST_IMAGE_BYTES = 10, 15_000_000
"""Of one message."""


class Attached(NamedTuple):
    """Content that goes with a message, and which versions of which files it shows."""

    text: str
    files: tuple[FileSeen, ...]
    unattached: tuple[str, ...] = ()
    """For the user: each mention whose content does not go with the message, and why."""
    images: tuple[ImageFile, ...] = ()


class Mention(NamedTuple):
    """What became of one mention."""

    fragment: str
    files: tuple[FileSeen, ...] = ()
    unattached: str = ""
    image: ImageFile | None = None


def attach_mentions(
    message: str,
    workspace: Workspace,
    cap: int = ATTACHED_CAP,
    images: Sequence[AttachedImage] = (),
    also: Sequence[str] = (),
) -> Attached:
    """The content of every file and folder that the message mentions; `images` go with it already."""
    there = {image.name for image in images}
    names = [name for name in dict.fromkeys([*mentioned(message), *also]) if name not in there]
    attached = attach_files(names, workspace, cap, how="user")
    found, left_out = attached.images, list[str]()
    while found and (problem := too_many([*images, *(each.image for each in found)])):
        left_out.append(f"{found[-1].image.name}: {problem}")
        found = found[:-1]
    labels = [image_label(image) for image in (*images, *(each.image for each in found))]
    labels += [f"[{each} Not attached.]" for each in left_out]
    return attached._replace(
        text="\n\n".join([*labels, attached.text] if attached.text else labels),
        images=found,
        unattached=(*attached.unattached, *left_out),
    )


def too_many(images: Sequence[AttachedImage]) -> str:
    """Why so many pictures cannot go with one message; empty when they can."""
    if len(images) > MOST_IMAGES:
        return f"at most {MOST_IMAGES} pictures go with one message."
    if sum(image.size for image in images) > MOST_IMAGE_BYTES:
        return f"the pictures of one message may have {MOST_IMAGE_BYTES:,} bytes together."
    return ""


def image_label(image: AttachedImage) -> str:
    return f"### {image.name} [picture: {image.described}]"


def attach_files(
    names: Iterable[str], workspace: Workspace, cap: int, how: Literal["user", "auto"]
) -> Attached:
    """The content of files and folders, as many as fit."""
    found: list[Mention] = []
    left = cap
    for name in names:
        mention = _attach(name, workspace, left, how)
        left -= len(mention.fragment.encode(errors="replace"))
        found.append(mention)
    return Attached(
        "\n\n".join(mention.fragment for mention in found if mention.fragment),
        tuple(seen for mention in found for seen in mention.files),
        tuple(mention.unattached for mention in found if mention.unattached),
        tuple(mention.image for mention in found if mention.image),
    )


def mentioned(message: str) -> list[str]:
    """What stands behind each `@`, once each, in order."""
    found = (match.group(1) for match in MENTION.finditer(message))
    names = (name[1:-1] if name.startswith('"') else name.rstrip(".,:;") for name in found)
    return [name for name in dict.fromkeys(names) if name]


def _attach(name: str, workspace: Workspace, left: int, how: Literal["user", "auto"]) -> Mention:
    try:
        place = workspace.resolve(name)
        if place.absolute.is_dir():
            listed = f"### {name}/\n{list_folder(workspace, place)}"
            return Mention(listed, unattached=f"{name}: a folder; the names in it are attached")
        if not place.inside or place.secret:
            fragment = f"[{name} was not attached: use the read tool, so that the user can be asked.]"
            why = "may hold secrets" if place.inside else "outside of this folder"
            return Mention(fragment, unattached=f"{name}: {why}; you are asked if the model wants to read it")
        if image := workspace.image(place):
            return Mention("", image=image)
        file = workspace.read(place)
    except (PathProblem, OSError) as problem:
        if not ("/" in name or re.search(r"\.\w{1,8}$", name)):
            return Mention("")
        why = f"{problem.strerror}." if isinstance(problem, OSError) else str(problem)
        shown = name[:NAME_CAP]
        told = why if why.startswith(name) else f"{shown}: {why}"
        return Mention(f"[@{shown}: {why} Do not guess its content.]", unattached=told)
    header = f"### {file.path} [hash: {file.sha256[:SHOWN_DIGITS]}]"
    if len(file.data) > left:
        size = len(file.data)
        return Mention(
            f"[{file.path} ({size} bytes) did not fit: use the read tool.]",
            unattached=f"{file.path}: {size:,} bytes are too many to attach; the model can read parts of it",
        )
    seen = FileSeen(path=file.path, sha256=file.sha256, how=how, size=len(file.data))
    return Mention(f"{header}\n{file.text}", (seen,))
