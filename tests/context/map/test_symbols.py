"""Definitions and names, read from the syntax trees of every language that the map knows."""

import pytest

from handrail.context.map.symbols import LANGUAGES, MAX_FILE_BYTES, Symbols, language_of, read_symbols

SAMPLES = {
    ".py": "LIMIT = 3\nclass Shop:\n    def sell(self): return price(1)\n"
    "def total():\n    def inner(): pass\n",
    ".js": "const LIMIT = 3;\nclass Shop { sell() { return price(1); } }\n"
    "function total() { function inner() {} }\n",
    ".ts": "export const LIMIT: number = 3;\nclass Shop { sell(): number { return price(1); } }\n"
    "function total() { const inner = 1; }\n",
    ".tsx": "const LIMIT = 3;\nclass Shop { sell() { return <b>{price(1)}</b>; } }\nfunction total() {}\n",
    ".rs": "const LIMIT: u8 = 3;\nstruct Shop;\nimpl Shop { fn sell(&self) -> u8 { price(1) } }\n"
    "fn total() {}\n",
    ".java": "class Shop { static int LIMIT; int sell() { return price(1); } int total() { return 0; } }\n",
    ".cpp": "class Shop { public: int sell() { return price(1); } };\nint total() { return 0; }\n",
    ".c": "struct Shop { int sell; };\nint total(void) { return price(1); }\n",
    ".rb": "LIMIT = 3\nclass Shop\n  def sell\n    price(1)\n  end\nend\ndef total\nend\n",
    ".cs": "class Shop { int sell() { return price(1); } int total() { return 0; } }\n",
    ".go": "package p\nconst LIMIT = 3\ntype Shop struct{}\n"
    "func (s Shop) sell() int { return price(1) }\nfunc total() {}\n",
}


def symbols_of(ending: str, text: str) -> Symbols:
    language = language_of(f"file{ending}")
    assert language is not None
    return read_symbols(text.encode(), language)


@pytest.mark.parametrize("ending", SAMPLES)
def test_definitions_and_names_of_a_language_are_read(ending: str) -> None:
    found = symbols_of(ending, SAMPLES[ending])
    names = {definition.name for definition in found.definitions}
    assert {"Shop", "total"} <= names
    assert "inner" not in names
    assert "price" in found.names
    if ending not in {".c", ".go"}:
        assert ("sell", "Shop") in {(each.name, each.owner) for each in found.definitions}
    if "LIMIT" in SAMPLES[ending] and ending != ".java":
        assert "LIMIT" in names


def test_every_grammar_takes_its_query() -> None:
    for ending in LANGUAGES:
        symbols_of(ending, "x\n")


def test_broken_syntax_gives_what_is_readable() -> None:
    found = symbols_of(
        ".py", "def good():\n    pass\n\nclass Half(\n\ndef also_good(x):\n    return helper(x\n"
    )
    assert {"good", "also_good"} <= {definition.name for definition in found.definitions}


@pytest.mark.parametrize(
    "text",
    ["x = 1\n" * MAX_FILE_BYTES, "var a=1;" * 2_000, "a\0b\n", ""],
    ids=["too large", "minified", "binary", "empty"],
)
def test_what_no_person_wrote_has_no_symbols(text: str) -> None:
    assert symbols_of(".js", text) == Symbols()


@pytest.mark.parametrize(
    "text", ["(" * 15_000 + "\n" * 50, "[" * 20_000 + "]\n" * 20_000, "def f(\n" * 5_000]
)
def test_deep_nesting_ends_well(text: str) -> None:
    assert isinstance(symbols_of(".py", text), Symbols)


def test_symbols_survive_being_stored() -> None:
    found = symbols_of(".py", SAMPLES[".py"])
    assert Symbols.unpack(found.pack()) == found


def test_names_that_are_no_words_are_left_out() -> None:
    found = symbols_of(".js", 'class Odd { "a b\\nignore all"() {} fine() {} }\n')
    assert {definition.name for definition in found.definitions} == {"Odd", "fine"}
