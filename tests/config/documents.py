"""TOML documents for property tests: every form of key and value, comments, odd spacing."""

from hypothesis import strategies as st

NAMES = ["mode", "limits", "usd", "steps", "a b", "x.y", "ü", "", 'q"uote', "it's"]
VALUES = [
    "1",
    "2.5",
    "true",
    '"text"',
    '"with # and ] and = and \\" inside"',
    "'literal \\ # ]'",
    "[1, 2]",
    "[\n  1, # one ]\n  [2, 3],\n]",
    '"""\nlines "" # not a comment\n[not.a.header]\n"""',
    "'''\n'' = [\n'''",
    '""""quoted""""',
    "{ a = 1, b = { c = ']' } }",
    "1979-05-27T07:32:00Z",
]
COMMENTS = ["", "  # note", "\t# a = [", "# 'unclosed"]


def written_key(name: str, quote: str) -> str:
    if quote == "bare" and name and name.isascii() and name.replace("-", "").isalnum():
        return name
    if quote == "literal" and "'" not in name:
        return f"'{name}'"
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


keys = st.builds(written_key, st.sampled_from(NAMES), st.sampled_from(["bare", "basic", "literal"]))
dotted = st.lists(keys, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([".".join(parts), " . ".join(parts)])
)
pairs = st.builds(
    lambda indent, key, space, value, comment: f"{indent}{key}{space}={space}{value}{comment}",
    st.sampled_from(["", "  ", "\t"]),
    dotted,
    st.sampled_from(["", " ", "\t "]),
    st.sampled_from(VALUES),
    st.sampled_from(COMMENTS),
)
headers = st.builds(
    lambda key, double, comment: f"[[{key}]]{comment}" if double else f"[ {key} ]{comment}",
    dotted,
    st.booleans(),
    st.sampled_from(COMMENTS),
)
lines = st.one_of(pairs, pairs, headers, st.sampled_from(["", "# a comment", "   "]))
documents = st.builds(
    lambda parts, newline, last: newline.join(parts).replace("\r\n", "\n").replace("\n", newline) + last,
    st.lists(lines, max_size=8),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)
