"""The types that a TypeScript file promises to others: of what it exports, in one form."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from handrail.changes.mutation.javascript_names import text_of

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax

DEEPEST = 20
"""Types within types; a type may be made of itself."""
CALLABLE = ("function_declaration", "generator_function_declaration", "arrow_function", "function_expression")
CLASS = ("class_declaration", "abstract_class_declaration", "class")
SEVERAL = {"object_type": "{};", "interface_body": "{};", "union_type": "()|", "intersection_type": "()&"}
"""Types of which the parts may stand in any order: what is around them, and between."""


def declared_types(root: "Syntax") -> dict[str, str]:
    """{place: type} of functions, methods and types that are exported, as far as they are written."""
    known = {text_of(name): one for one in _declared(root) if (name := one.child_by_field_name("name"))}
    found: dict[str, str] = {}
    for one in root.named_children:
        if one.type == "export_statement":
            for child in one.named_children:
                _note(child, known, found)
    return found


def _declared(root: "Syntax") -> Iterator["Syntax"]:
    for one in root.named_children:
        inner = one.named_children if one.type == "export_statement" else [one]
        yield from (
            each for each in inner if each.type in ("type_alias_declaration", "interface_declaration")
        )


def _note(one: "Syntax", known: Mapping[str, "Syntax"], found: dict[str, str]) -> None:
    name = text_of(one.child_by_field_name("name"))
    if one.type in CALLABLE:
        found |= _signature(one, name, known)
        found.setdefault(f"{name}(forms)", "")
    elif one.type == "function_signature":
        place = f"{name}(forms)"
        found[place] = f"{found.get(place, '')}{sorted(_signature(one, name, known).items())}"
    elif one.type == "lexical_declaration":
        for each in one.named_children:
            value = each.child_by_field_name("value")
            if value is not None and value.type in CALLABLE:
                found |= _signature(value, text_of(each.child_by_field_name("name")), known)
    elif one.type in CLASS and (body := one.child_by_field_name("body")):
        for each in body.named_children:
            if not any(child.type == "accessibility_modifier" for child in each.children):
                found |= _signature(each, f"{name}.{text_of(each.child_by_field_name('name'))}", known)
    elif one.type in ("type_alias_declaration", "interface_declaration"):
        found[name] = _definition(one, known, 0)


def _signature(one: "Syntax", name: str, known: Mapping[str, "Syntax"]) -> dict[str, str]:
    found: dict[str, str] = {}
    letters = {text: f"${at}" for at, text in enumerate(_letters(one))}
    parameters = one.child_by_field_name("parameters")
    for at, each in enumerate(parameters.named_children if parameters else ()):
        if hint := each.child_by_field_name("type"):
            found[f"{name}({at})"] = _shape(hint, known, letters, 0)
    for field in ("return_type", "type"):
        if hint := one.child_by_field_name(field):
            found[f"{name}()"] = _shape(hint, known, letters, 0)
    return found


def _letters(one: "Syntax") -> list[str]:
    """The names that stand for types in a function or type of many forms."""
    given = one.child_by_field_name("type_parameters")
    return [text_of(each.child_by_field_name("name")) for each in (given.named_children if given else ())]


def _definition(one: "Syntax", known: Mapping[str, "Syntax"], depth: int) -> str:
    letters = {text: f"${at}" for at, text in enumerate(_letters(one))}
    parts = [each for each in one.named_children if each.type in ("extends_type_clause", "interface_body")]
    value = one.child_by_field_name("value")
    return "".join(_shape(each, known, letters, depth) for each in ([value] if value else parts))


def _shape(one: "Syntax", known: Mapping[str, "Syntax"], letters: Mapping[str, str], depth: int) -> str:
    text = text_of(one)
    if depth > DEEPEST:
        return text
    if one.type == "type_identifier" and text in letters:
        return letters[text]
    if one.type == "type_identifier" and text in known and not _letters(known[text]):
        return _definition(
            known[text], {each: node for each, node in known.items() if each != text}, depth + 1
        )
    if one.type in ("parenthesized_type", "type_annotation") and one.named_child_count == 1:
        return _shape(one.named_children[0], known, letters, depth)
    parts = [each for each in one.children if each.type != "comment"]
    if around := SEVERAL.get(one.type):
        shapes = (
            _shape(each, known, letters, depth + 1) for each in one.named_children if each.type != "comment"
        )
        return around[0] + around[2].join(sorted(shapes)) + around[1]
    if not parts:
        return text
    return " ".join(_shape(each, known, letters, depth + 1) for each in parts)
