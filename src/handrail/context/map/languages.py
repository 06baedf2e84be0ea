"""Which languages the map reads, and what counts as a definition in each."""

import os
from typing import NamedTuple

# `c` names what holds others (a class), `f` what holds nothing worth showing (a function, a constant), `r`
# any name at all. A definition inside a function is nobody's business but the function's.
PYTHON = """
(class_definition name: (_) @c)
(function_definition name: (_) @f)
(module (expression_statement (assignment left: (identifier) @f)))
(identifier) @r
"""
TYPESCRIPT = """
[(class_declaration name: (_) @c) (abstract_class_declaration name: (_) @c)
 (interface_declaration name: (_) @c) (enum_declaration name: (_) @c) (internal_module name: (_) @c)]
[(function_declaration name: (_) @f) (generator_function_declaration name: (_) @f)
 (function_signature name: (_) @f) (method_definition name: (_) @f) (abstract_method_signature name: (_) @f)
 (method_signature name: (_) @f) (type_alias_declaration name: (_) @f)]
(program [(lexical_declaration (variable_declarator name: (identifier) @f))
          (variable_declaration (variable_declarator name: (identifier) @f))
          (export_statement (lexical_declaration (variable_declarator name: (identifier) @f)))])
[(identifier) (type_identifier) (property_identifier) (shorthand_property_identifier)] @r
"""
GO = """
(type_spec name: (_) @f)
[(function_declaration name: (_) @f) (method_declaration name: (_) @f)]
(source_file [(const_declaration (const_spec name: (_) @f)) (var_declaration (var_spec name: (_) @f))])
[(identifier) (type_identifier) (field_identifier)] @r
"""
RUST = """
[(trait_item name: (_) @c) (mod_item name: (_) @c) (impl_item type: (type_identifier) @c)
 (impl_item type: (generic_type type: (type_identifier) @c))]
[(struct_item name: (_) @f) (enum_item name: (_) @f) (union_item name: (_) @f) (type_item name: (_) @f)
 (const_item name: (_) @f) (static_item name: (_) @f) (macro_definition name: (_) @f)]
[(function_item name: (_) @f) (function_signature_item name: (_) @f)]
[(identifier) (type_identifier) (field_identifier)] @r
"""
JAVA = """
[(class_declaration name: (_) @c) (interface_declaration name: (_) @c) (enum_declaration name: (_) @c)
 (record_declaration name: (_) @c) (annotation_type_declaration name: (_) @c)]
[(method_declaration name: (_) @f) (constructor_declaration name: (_) @f)]
[(identifier) (type_identifier)] @r
"""
CPP = """
[(class_specifier name: (_) @c body: (_)) (struct_specifier name: (_) @c body: (_))
 (namespace_definition name: (_) @c)]
[(enum_specifier name: (_) @f body: (_)) (union_specifier name: (_) @f body: (_))
 (type_definition declarator: (type_identifier) @f) (preproc_function_def name: (_) @f)]
(function_definition declarator: [
  (function_declarator declarator: [(identifier) (field_identifier)] @f)
  (function_declarator declarator: (qualified_identifier name: (identifier) @f))
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @f))])
(field_declaration declarator: (function_declarator declarator: (field_identifier) @f))
[(identifier) (type_identifier) (field_identifier)] @r
"""
RUBY = """
[(class name: (constant) @c) (class name: (scope_resolution name: (_) @c))
 (module name: (constant) @c) (module name: (scope_resolution name: (_) @c))]
[(method name: (_) @f) (singleton_method name: (_) @f) (program (assignment left: (constant) @f))]
[(identifier) (constant)] @r
"""
C_SHARP = """
[(class_declaration name: (_) @c) (interface_declaration name: (_) @c) (struct_declaration name: (_) @c)
 (enum_declaration name: (_) @c) (record_declaration name: (_) @c)]
[(method_declaration name: (_) @f) (constructor_declaration name: (_) @f) (property_declaration name: (_) @f)]
(identifier) @r
"""


class Language(NamedTuple):
    """A wheel with a grammar, the function in it that gives the grammar, and what is looked for."""

    module: str
    query: str
    grammar: str = "language"


_TYPESCRIPT = Language("tree_sitter_typescript", TYPESCRIPT, "language_typescript")
_TSX = Language("tree_sitter_typescript", TYPESCRIPT, "language_tsx")
_CPP = Language("tree_sitter_cpp", CPP)
_RUBY = Language("tree_sitter_ruby", RUBY)
LANGUAGES = {
    ".py": (_PYTHON := Language("tree_sitter_python", PYTHON)),
    ".pyi": _PYTHON,
    # The grammar for TypeScript with elements reads JavaScript too.
    ".js": _TSX,
    ".jsx": _TSX,
    ".mjs": _TSX,
    ".cjs": _TSX,
    ".tsx": _TSX,
    ".ts": _TYPESCRIPT,
    ".mts": _TYPESCRIPT,
    ".cts": _TYPESCRIPT,
    ".go": Language("tree_sitter_go", GO),
    ".rs": Language("tree_sitter_rust", RUST),
    ".java": Language("tree_sitter_java", JAVA),
    ".c": _CPP,
    ".h": _CPP,
    ".cc": _CPP,
    ".cpp": _CPP,
    ".cxx": _CPP,
    ".hh": _CPP,
    ".hpp": _CPP,
    ".rb": _RUBY,
    ".rake": _RUBY,
    ".cs": Language("tree_sitter_c_sharp", C_SHARP),
}


def language_of(path: str) -> Language | None:
    """The language that a file of this name is read as; None for one that the map does not read."""
    return LANGUAGES.get(os.path.splitext(path)[1].lower())
