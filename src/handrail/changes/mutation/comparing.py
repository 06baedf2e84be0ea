"""Whether two versions of some files do the same: brought into one form, they are compared as trees."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from handrail.changes.mutation.calls import Callee, Callees, without_calls
from handrail.changes.mutation.effects import LATER, happenings
from handrail.changes.mutation.inlining import without_names
from handrail.changes.mutation.loops import without_loops
from handrail.changes.mutation.marking import marked, names_of
from handrail.changes.mutation.modules import PLAIN_BASES, Defined, definitions, is_plain, ordered, unwrapped
from handrail.changes.mutation.renames import Side, renamed_words, with_words, written
from handrail.changes.mutation.shaping import shaped
from handrail.changes.mutation.tree import Binding, Node, block, put, uses, walk


class Elsewhere(NamedTuple):
    """What other files must not have, for the verdict to hold."""

    gone: tuple[str, ...] = ()
    """Names of modules and classes that nobody may use any more."""
    come: tuple[str, ...] = ()
    """Names of new members, which nobody may have already."""
    known_by: tuple[str, ...] = ()
    """Words without which a file has nothing to do with the changed ones."""
    bases: tuple[str, ...] = ()
    """Classes that are built upon and stand elsewhere; what they call is known only if they are found."""


class Difference(NamedTuple):
    why: str
    """Empty where there is none."""
    elsewhere: Elsewhere = Elsewhere()


def difference(old: Sequence[Side], new: Sequence[Side]) -> Difference:
    """What the new files do otherwise than the old ones, file by file in the same order."""
    old, new = [_formed(side) for side in old], [_formed(side) for side in new]
    hints = _types(old, new)
    if hints:
        return Difference(hints)
    words = renamed_words(old, new)
    first = ""
    for inline in ("none", "one-sided", "private"):
        why = _compared(old, new, words, inline)
        if not why:
            return Difference("", _elsewhere(old, new))
        first = first or why
    return Difference(first)


def _formed(side: Side) -> Side:
    tree = marked(side.tree)
    tree = without_loops(shaped(tree))
    return side._replace(tree=shaped(without_names(tree)))


def _types(old: Sequence[Side], new: Sequence[Side]) -> str:
    for before, after in zip(old, new, strict=True):
        for place, hint in before.types.items():
            if place in after.types and after.types[place] != hint:
                return f"a type in the signature of {place.split('(')[0]} changed"
    return ""


def _elsewhere(old: Sequence[Side], new: Sequence[Side]) -> Elsewhere:
    before = set[str]().union(*(_own_words(side.tree) | _members(side.tree) for side in old))
    after = set[str]().union(*(_own_words(side.tree) | _members(side.tree) for side in new))
    members = set[str]().union(*(_members(side.tree) for side in new)) - before
    gone = (before - after) | _changed_privates(old, new)
    classes = [one for side in old for one in walk(side.tree) if one.kind == "class"]
    names = {one.binding.name for one in classes if one.binding}
    # A class from elsewhere may call, or be in the way of, what is private here.
    changed = [one for one in classes if _members(one) & gone]
    changed += [
        one
        for side in new
        for one in walk(side.tree)
        if one.kind == "class" and any(not side.private_member(word) for word in _members(one) & members)
    ]
    bases = {word for one in changed for word in _strange_bases(one)} - names
    known_by = names | {word for one in classes for word in _strange_bases(one)}
    return Elsewhere(*(tuple(sorted(words)) for words in (gone, members, known_by, bases)))


def _changed_privates(old: Sequence[Side], new: Sequence[Side]) -> set[str]:
    """Private definitions that are others now: where they stand nobody may tell, elsewhere somebody might."""
    before, after = (
        {
            one.binding.name: written(one.node, str)
            for side in sides
            for one in definitions(side.tree)
            if not one.binding.fixed
        }
        for sides in (old, new)
    )
    return {word for word, text in before.items() if after.get(word, text) != text}


def _own_words(tree: Node) -> set[str]:
    return {one.binding.name for one in definitions(tree)}


def _members(tree: Node) -> set[str]:
    """Names that classes have for others to find."""
    found = set()
    for one in walk(tree):
        if one.kind == "method":
            found.add(one.text)
        elif one.kind in ("assign", "field") and one.parts[0].kind in ("attr", "member"):
            found.add(one.parts[0].text)
    return found


def _strange_bases(node: Node) -> set[str]:
    """The last names of what a class is built upon, without what is known to call nothing private."""
    found = set()
    for one in node.parts[0].parts:
        inner = one.parts[0] if one.kind == "index" else one
        word = inner.binding.name if inner.binding else inner.text.replace("#", ".").rpartition(".")[2]
        if inner.text not in PLAIN_BASES and word:
            found.add(word)
    return found


def _compared(old: Sequence[Side], new: Sequence[Side], words: Mapping[str, str], inline: str) -> str:
    before = set[str]().union(*(names_of(with_words(side.tree, words)) for side in old))
    before |= set(words.values())
    after = set[str]().union(*(names_of(side.tree) for side in new))
    for one, other in zip(old, new, strict=True):
        left = _final(one, words, after, inline, is_new=False)
        right = _final(other, {}, before, inline, is_new=True)
        if why := _unlike(left, right):
            return why
    return ""


def _final(
    side: Side, words: Mapping[str, str], others: set[str], inline: str, *, is_new: bool
) -> list[tuple[str, str, str]]:
    """The units of a file in their last form: a name, its signature, and all of it."""

    def named(binding: Binding) -> str:
        return words.get(binding.name, binding.name) if not binding.fixed else binding.name

    tree = with_words(side.tree, words)
    # What is public and gone is missed by somebody; what is new is part of the old if it was put back.
    used = {each.binding for each in definitions(tree) if _is_used(tree, each)} if is_new else set()
    called = {one.text for one in walk(tree) if one.kind == "attr"} if is_new else set()
    if inline != "none":
        tree = _without_values(tree, lambda binding: named(binding) not in others)
        tree = without_calls(tree, _callees(tree, side, named, others, inline))
    tree = _without_unused(tree, named, others, used)
    free = {word for word in names_of(tree) if side.private_member(word) or word in called} - others
    tree = _without_methods(tree, free)
    tree = ordered(tree, named)
    units = []
    for one in tree.parts[0].parts:
        inner = unwrapped(one)
        binding = inner.parts[0].binding if inner.kind == "assign" else inner.binding
        name = named(binding) if binding else ""
        signature = written(inner.parts[0].parts[0], str) if inner.kind == "define" else ""
        units.append((name, signature, written(one, lambda word: words.get(word, word))))
    return units


def _is_used(tree: Node, one: Defined) -> bool:
    own = uses(one.node, one.binding)
    return uses(tree, one.binding) > own


def _without_values(tree: Node, chosen: Callable[[Binding], bool]) -> Node:
    """Constants that only one side has, where they are used."""
    for one in definitions(tree):
        if one.node.kind != "assign" or one.binding.shared or not chosen(one.binding):
            continue
        value = one.node.parts[1]
        if not _is_constant(value) or _is_early(tree, one.binding):
            continue
        statements = [
            each if each is one.node or each.parts[:1] == (one.node,) else put(each, one.binding, value)
            for each in tree.parts[0].parts
        ]
        tree = tree.with_parts(block(*statements))
    return shaped(tree)


def _is_constant(value: Node) -> bool:
    return value.kind == "const" or (value.kind == "tuple" and all(map(_is_constant, value.parts)))


def _is_early(tree: Node, binding: Binding) -> bool:
    """Whether something uses a name when the module is loaded, before the name is there."""
    for one in tree.parts[0].parts:
        for each in happenings(unwrapped(one)):
            if each.binding is binding and each.what == "store":
                return False
            if each.binding is binding and each.when != LATER:
                return True
        if unwrapped(one).kind == "class" and uses(one, binding):
            return True
    return False


def _callees(
    tree: Node, side: Side, named: Callable[[Binding], str], others: set[str], inline: str
) -> Callees:
    functions: dict[Binding, Callee] = {}
    known = {one.binding: one.node for one in definitions(tree)}
    for one in definitions(tree):
        wanted = named(one.binding) not in others or (inline == "private" and not one.binding.fixed)
        if one.node.kind != "define" or not wanted or not _can_be_placed(one.node.parts[0]):
            continue
        if is_plain(one.node, known) and not _is_early(tree, one.binding):
            functions[one.binding] = Callee(one.node.parts[0], 0)
    for node in walk(tree):
        binding = node.binding if node.kind == "define" else None
        if binding is None or binding.depth == 0 or binding.shared:
            continue
        if _can_be_placed(node.parts[0]) and not node.parts[0].parts[2].parts:
            functions[binding] = Callee(node.parts[0], binding.depth)
    return Callees(functions, _methods(tree, side, others, inline))


def _methods(tree: Node, side: Side, others: set[str], inline: str) -> dict[str, Callee]:
    found: dict[str, Callee] = {}
    twice: set[str] = set()
    for node in walk(tree):
        if node.kind != "class" or node.binding is None:
            continue
        for one in node.parts[2].parts:
            if one.kind != "method" or one.parts[0].kind != "function":
                continue
            wanted = one.text not in others or (inline == "private" and side.private_member(one.text))
            kinds = [each.text for each in one.parts[0].parts[2].parts]
            if one.text in found:
                twice.add(one.text)
            if wanted and kinds in ([], ["staticmethod"]) and _can_be_placed(one.parts[0]):
                receiver = side.has_receivers and not kinds
                function = one.parts[0]._replace(text=" ".join(one.parts[0].text.replace("own", "").split()))
                found[one.text] = Callee(function, node.binding.depth, node.binding, receiver)
    return {name: callee for name, callee in found.items() if name not in twice}


def _can_be_placed(function: Node) -> bool:
    inner = list(walk(function))
    if any(one.kind in ("yield", "super", "arguments") for one in inner) or "generator" in function.text:
        return False
    return not any(one.binding is not None and one.binding.fixed and one.binding.depth > 0 for one in inner)


def _without_unused(
    tree: Node, named: Callable[[Binding], str], others: set[str], used: set[Binding]
) -> Node:
    """Without definitions that nothing uses: private ones, and new ones whose every use was put back."""
    while True:
        known = {one.binding: one.node for one in definitions(tree)}
        unused = set()
        for one in definitions(tree):
            new = named(one.binding) not in others and one.binding in used
            exported = any(
                each.kind == "export" and each.parts[:1] == (one.node,) for each in tree.parts[0].parts
            )
            if exported and not new:
                continue
            if (new or not one.binding.fixed) and is_plain(one.node, known) and not _is_used(tree, one):
                unused.add(one.binding)
        kept = [one for one in tree.parts[0].parts if _defines(one) not in unused]
        if len(kept) == len(tree.parts[0].parts):
            return tree
        tree = tree.with_parts(block(*kept))


def _defines(one: Node) -> Binding | None:
    inner = unwrapped(one)
    return inner.parts[0].binding if inner.kind == "assign" else inner.binding


def _without_methods(tree: Node, free: set[str]) -> Node:
    """Without methods that only this side has and that nothing names any more."""
    named = {one.text for one in walk(tree) if one.kind in ("attr", "member", "ref")}

    def smaller(one: Node) -> Node:
        if one.kind == "export" and one.parts:
            return one.with_parts(smaller(one.parts[0]), *one.parts[1:])
        if one.kind != "class":
            return one
        kept = [
            part
            for part in one.parts[2].parts
            if not (
                part.kind == "method"
                and part.text in free
                and part.text not in named
                and not part.text.startswith("__")
                and part.parts[0].kind == "function"
                and all(each.text == "staticmethod" for each in part.parts[0].parts[2].parts)
            )
        ]
        return one.with_parts(*one.parts[:2], block(*kept))

    return tree.with_parts(block(*map(smaller, tree.parts[0].parts)))


def _unlike(left: list[tuple[str, str, str]], right: list[tuple[str, str, str]]) -> str:
    """What differs first, in words; empty where nothing does."""
    if [unit[2] for unit in left] == [unit[2] for unit in right]:
        return ""
    olds, news = {unit[0]: unit for unit in left}, {unit[0]: unit for unit in right}
    for name, unit in olds.items():
        if name and name not in news:
            return f"{name} is gone"
        if name and unit[2] != news[name][2]:
            changed = "the signature of" if unit[1] != news[name][1] else "what is done in"
            return f"{changed} {name} changed"
    for name in news:
        if name and name not in olds:
            return f"{name} is new"
    return "what the module does when it is loaded changed"
