"""Reads a JavaScript or TypeScript file into the tree that is compared.

What may differ: white space, comments, quotes, semicolons, trailing commas and needless parentheses; the
order of imported names and of function and type declarations; names that are local to a function or, unless
exported, to a module; names of `#private` members. Types are code.
"""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from handrail.changes.mutation import Binding, Token

if TYPE_CHECKING:
    from tree_sitter import Node

    Part = tuple[Node, list[Token]]

DECLARATIONS = ("function_declaration", "generator_function_declaration")
FUNCTIONS: tuple[str, ...] = (*DECLARATIONS, "function_expression", "generator_function")
FUNCTIONS += ("arrow_function", "method_definition")
CLASSES = ("class", "class_declaration", "abstract_class_declaration")
BODIES = (*FUNCTIONS, "class_static_block")
BLOCKS = ("statement_block", "switch_body", "for_statement", "for_in_statement", "catch_clause", "class_body")
SCOPES = (*BODIES, *BLOCKS, "program")
MOVABLE = (*DECLARATIONS, "interface_declaration", "type_alias_declaration")
SHORT_PAIR = {"shorthand_property_identifier": "pair"}
SHORT_PAIR |= {"shorthand_property_identifier_pattern": "pair_pattern"}
NAMES = ("identifier", "private_property_identifier", *SHORT_PAIR)
RAW = ("template_string", "jsx_element", "template_literal_type")  # white space inside is text
UNKNOWN = re.compile(
    r"with_statement|enum_decl.*|ambient_.*|internal_module|module|eval|calle[er]|angular|.*\\.*"
)
"""What gives names a meaning that the scopes do not know."""
SPECIAL = re.compile(
    r"arguments|eval|undefined|NaN|Infinity|async|await|yield|let|of|mock.*|use[A-Z].*|.*\$.*|React|h|Fragment"
)
"""Words that the language or a common tool gives a meaning."""
NEWLINE_AFTER = re.compile(
    "return|throw|break|continue|yield|async|await|get|set|static|accessor|type|interface|namespace|module|declare"
    "|let|abstract|public|private|protected|readonly|override|using|asserts|global|enum|infer|keyof|unique"
)
NEWLINE_BEFORE = re.compile(r"\+\+|--|=>|as|satisfies|is|in|instanceof|[(\[`*+-]|/.*")
"""Where a line break may end a statement that would go on without it, or the other way round."""
ENDS_VALUE = re.compile(r".*[\w$\"'`)\]}]", re.DOTALL)
MAGIC_COMMENT = re.compile(r"///|.*([@#]__|@jsx|@ts-|@flow|@jest|@vite|webpack)", re.DOTALL)
GROUPING = re.compile(
    "return_statement|variable_declarator|arrow_function|arguments|pair|array|jsx_expression"
    "|(ternary|binary|assignment)_expression"
)
"""Where parentheses around an expression only group."""
BINDS = {"variable_declarator": "name", "pair_pattern": "value", "import_specifier": "alias"}
BINDS |= dict.fromkeys(("assignment_pattern", "object_assignment_pattern"), "left")
BINDS |= dict.fromkeys(("required_parameter", "optional_parameter"), "pattern")
HOLDS = re.compile(".*_declaration|(object|array|rest)_pattern|import_.*|named.*|namespace_import")


def read_javascript(path: str, text: str, kept: set[str]) -> list[Token]:
    """The tree of a file; raises SyntaxError."""
    from tree_sitter import Language, Parser

    grammar = import_module("tree_sitter_typescript")
    typed = path.endswith((".ts", ".mts", ".cts"))
    language = grammar.language_typescript() if typed else grammar.language_tsx()
    root = Parser(Language(language)).parse(text.encode()).root_node
    if root.has_error:
        raise SyntaxError("the text does not fit the grammar")
    return _Reader(path, text.encode(), root, kept).visit(root, _Scope(None))


class _Name(Binding):
    def __init__(self, word: str, kind: str, fixed: str) -> None:
        super().__init__(word, kind, self._problem)
        self.fixed = fixed
        self.is_function = False
        self.escapes = False

    def _problem(self) -> str:
        is_seen = self.is_function and self.escapes
        return self.fixed or ("the function is passed on, and carries its name" if is_seen else "")


class _Scope:
    def __init__(self, parent: "_Scope | None") -> None:
        self.parent = parent
        self.names: dict[str, _Name] = {}

    def find(self, word: str) -> _Name:
        scope = self
        while word not in scope.names and scope.parent:
            scope = scope.parent
        return scope.names.setdefault(word, _Name(word, "global", "it is not declared here"))


class _Reader:
    def __init__(self, path: str, source: bytes, root: "Node", kept: set[str]) -> None:
        self._source = source
        self._kept = kept
        self._end, self._newline, self._before = 0, False, ""
        nodes = list(_all(root))
        kinds = {one.type for one in nodes if one.child_count}
        exports = [one for one in nodes if one.type == "export_statement"]
        self._exported = {each.id for one in exports for each in one.children}
        self._taken = {_text(one) for one in nodes if one.type == "type_identifier"}
        words = {_text(one) for one in nodes if one.type.endswith("identifier")} - {"module"}
        unknown = sorted(filter(UNKNOWN.fullmatch, kinds | words))
        self._unknown = f"{unknown[0]} gives names another meaning" if unknown else ""
        self._private = "decorators see it" if "decorator" in kinds else ""
        is_module = exports or "import_statement" in kinds or path.endswith((".mjs", ".cjs", ".mts", ".cts"))
        self._shared = "" if is_module else "other scripts can see it"
        if self._shared and b"<!--" in source:
            raise SyntaxError("it may have HTML comments")
        # The names that functions get from where they stand; and where a name is only declared or called.
        self._naming: set[int] = set()
        self._only_called: set[int] = set()
        for one in nodes:
            target, called = _field(one, "name", "left", "pattern"), _field(one, "function")
            if target and (one.type in FUNCTIONS or _is_function(_field(one, "value", "right"))):
                self._naming.add(target.id)
            if target and one.type in (*FUNCTIONS, "variable_declarator", "public_field_definition"):
                self._only_called.add(target.id)
            if called:
                self._only_called.add((_field(called, "property") or called).id)

    def _declare(self, scope: _Scope, words: Iterable[str], fixed: str = "") -> None:
        for word in words:
            is_taken = word in self._taken or SPECIAL.fullmatch(word)
            why = self._unknown or fixed or ("it has a meaning elsewhere too" if is_taken else "")
            found = scope.names.setdefault(word, _Name(word, "local", why))
            found.fixed = found.fixed or why

    def _scope(self, one: "Node", outer: _Scope, *, is_body: bool) -> _Scope:
        scope = _Scope(outer)
        if one.type in FUNCTIONS:
            given = _field(one, "parameters")
            for each in given.named_children if given else [_field(one, "parameter")]:
                is_plain = each is None or not each.child_count or each.children[0] == _field(each, "pattern")
                self._declare(scope, _bound(each), "" if is_plain else "it is a property too")
            if one.type in ("function_expression", "generator_function"):
                self._declare(scope, _bound(_field(one, "name")), "it is the name of the function")
            return scope
        shared = self._shared if one.type == "program" else ""
        for each in _own(one):
            fixed = shared or ("it is exported" if each.id in self._exported else "")
            words = [_text(_field(each, "name"))]
            if each.type in ("lexical_declaration", "import_statement"):
                self._declare(scope, _bound(each), fixed)
            elif each.type in DECLARATIONS:
                leaves = "" if is_body else "it may be seen outside of its block"
                self._declare(scope, words, fixed or leaves)
            elif each.type in CLASSES:
                self._declare(scope, words, "a class carries its name")
            elif one.type == "class_body" and words[0].startswith("#"):
                self._declare(scope, words, self._private)
        if one.type == "for_in_statement" and _text(_field(one, "kind")) in ("let", "const"):
            self._declare(scope, _bound(_field(one, "left")))
        elif one.type == "catch_clause":
            self._declare(scope, _bound(_field(one, "parameter")))
        elif is_body:
            self._declare(scope, _variables(one), shared)
            # What has the name of a parameter is that parameter.
            scope.names |= {word: outer.names[word] for word in scope.names if word in outer.names}
        if one.type == "program":
            self._taken |= set(scope.names)
        return scope

    def visit(self, one: "Node", scope: _Scope, field: str = "", *, is_body: bool = False) -> list[Token]:
        """The tokens of a node; the field is what it is in the node around it."""
        kind, line = one.type, one.start_point.row + 1
        if not one.child_count or kind in ("string", "regex"):
            return self._leaf(one, scope, field)
        is_body = is_body or kind == "program"
        inner = self._scope(one, scope, is_body=is_body) if kind in SCOPES else scope
        parts: list[Part] = []
        for at, child in enumerate(one.children):
            name = one.field_name_for_child(at) or ""
            tokens: list[Token] = []
            if kind in RAW and at:
                tokens.append(Token(line, f"space {self._source[self._end : child.start_byte].decode()}"))
                self._end = child.start_byte
            if _is_dropped(one, at):
                self._leaf(child, scope, name)
                continue
            if (kind.startswith("jsx_") and name == "name") or kind == "export_specifier":
                for each in _all(child):
                    scope.find(_text(each)).fixed = "it is exported or an element"
            is_outside = kind in (*DECLARATIONS, "method_definition") and name in ("name", "decorator")
            is_grouped = child.type == "parenthesized_expression" and GROUPING.fullmatch(kind)
            if is_grouped and child.child_count == 3:
                left, middle, right = child.children
                tokens += self._leaf(left, inner, "")[:-1] + self.visit(middle, inner, name)
                self._leaf(right, inner, "")
            else:
                is_function_body = kind in BODIES and child.type == "statement_block"
                tokens += self.visit(child, scope if is_outside else inner, name, is_body=is_function_body)
            if (kind, name) in (("import_specifier", "name"), ("export_specifier", "alias")):
                tokens = [Token(line, _text(child))]
            parts.append((child, tokens))
        if is_body:
            parts = self._hoisted(parts, is_free=kind != "program" or not self._shared)
        elif kind == "named_imports":
            parts.sort(key=lambda part: _text(part[0]))
        inside = [token for _, tokens in parts for token in tokens]
        return [Token(line, f"{field} {kind} ("), *inside, Token(one.end_point.row + 1, ")")]

    def _leaf(self, one: "Node", scope: _Scope, field: str) -> list[Token]:
        """A token of the source, after a token for a line break that may matter."""
        text, line = _text(one), one.start_point.row + 1
        gap = self._source[self._end : one.start_byte].decode()
        if gap.strip():
            raise SyntaxError("the text does not fit the grammar")
        is_comment = one.type == "comment"
        self._newline = self._newline or bool(re.search("[\r\n\u2028\u2029]", gap + text * is_comment))
        self._end = one.end_byte
        if is_comment:
            return [Token(line, text)]
        goes_on = NEWLINE_BEFORE.fullmatch(text) and ENDS_VALUE.fullmatch(self._before)
        is_break = self._newline and (goes_on or NEWLINE_AFTER.fullmatch(self._before))
        tokens = [Token(line, "line break")] if is_break else []
        self._newline, self._before = False, text
        if one.type in NAMES:
            found = scope.find(text)
            found.escapes = found.escapes or one.id not in self._only_called
            found.is_function = found.is_function or one.id in self._naming
            tokens.append(Token(line, "", found))
            if one.type in SHORT_PAIR and text != "__proto__":  # `{a}` is `{a: a}`
                pair = [f"{field} {SHORT_PAIR[one.type]} (", f"key property_identifier {text}", " : :"]
                tokens = [*(Token(line, each) for each in pair), *tokens, Token(line, ")")]
            return tokens
        if one.type == "string" and one.parent and one.parent.type != "jsx_attribute":
            text = re.sub(r"\\(.)", lambda each: each[1] if each[1] in "'\"" else each[0], text[1:-1])
        return [*tokens, Token(line, f"{field} {one.type} {text}")]

    def _hoisted(self, parts: "list[Part]", *, is_free: bool) -> "list[Part]":
        """A body, with those declarations at its end, sorted, that are there before it runs."""
        inner = [_field(child, "declaration") or child for child, _ in parts]
        words = [_text(_field(each, "name")) for each in inner]
        found: list[Part] = []
        hoisted: list[tuple[str, int]] = []
        is_start = True
        for at, (child, tokens) in enumerate(parts):
            is_string = child.type == "expression_statement" and child.children[0].type == "string"
            is_start = is_start and (is_string or child.type in ("{", "comment", "hash_bang_line"))
            tokens[0].text += " directive" if is_string and is_start else ""
            if is_free and inner[at].type in MOVABLE and words[at] and words.count(words[at]) == 1:
                hoisted.append((words[at] if words[at] in self._kept else "~", at))
            else:
                found.append(parts[at])
        return [*found, *(parts[at] for _, at in sorted(hoisted))]


def _text(one: "Node | None") -> str:
    return (one.text or b"").decode() if one is not None else ""


def _field(one: "Node", *names: str) -> "Node | None":
    return next((child for name in names if (child := one.child_by_field_name(name))), None)


def _all(one: "Node") -> Iterator["Node"]:
    waiting = [one]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += each.children


def _own(one: "Node") -> Iterator["Node"]:
    """What belongs to the scope of a node itself."""
    for child in one.named_children:
        yield child
        if child.type not in SCOPES:
            yield from _own(child)


def _bound(one: "Node | None") -> Iterator[str]:
    """The names that a declaration, an import or a pattern binds."""
    if one is None:
        return
    if one.type in ("identifier", "shorthand_property_identifier_pattern"):
        yield _text(one)
    elif one.type in BINDS:
        yield from _bound(_field(one, BINDS[one.type], "name"))
    elif HOLDS.fullmatch(one.type):
        for child in one.named_children:
            yield from _bound(child)


def _variables(one: "Node") -> Iterator[str]:
    """The names that `var` declares somewhere in a function."""
    for child in one.named_children:
        if child.type == "variable_declaration":
            yield from _bound(child)
        if child.type == "for_in_statement" and _text(_field(child, "kind")) == "var":
            yield from _bound(_field(child, "left"))
        if child.type not in BODIES:
            yield from _variables(child)


def _is_function(one: "Node | None") -> bool:
    while one is not None and one.type == "parenthesized_expression":
        one = next((each for each in one.named_children if each.type != "comment"), None)
    return one is not None and one.type in (*FUNCTIONS, *CLASSES)


def _is_dropped(one: "Node", at: int) -> bool:
    """Whether a child says nothing: a comment, a semicolon, a comma between members or at the end."""
    child = one.children[at]
    if child.type == "comment":
        return not MAGIC_COMMENT.match(_text(child))
    if child.type != ",":
        return child.type == ";" and one.type != "for_statement"
    around = [each.type for each in one.children[at - 1 :] if each.type != "comment"]
    is_last = len(around) == 3 and around[0] not in ("[", ",")
    return is_last or one.type in ("object_type", "interface_body", "named_imports")
