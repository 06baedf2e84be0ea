"""What no edit may do to a text, and what looks like it and is fine."""

import pytest

from handrail.changes.forms.text_checks import check_new_text
from handrail.protocol.errors import PathProblem

CODE = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"


def reason(path: str, old: str | None, new: str) -> str:
    try:
        check_new_text(path, old, new)
    except PathProblem as problem:
        return problem.reason
    return ""


@pytest.mark.promise("CHG-34")
@pytest.mark.parametrize(
    "marker",
    [
        "# ... existing code ...",
        "// rest unchanged",
        "<!-- unchanged -->",
        "/* ... rest of file ... */",
        "-- keep the rest as is",
        "# [previous code here]",
        "...",
        "# ...",
        "# (unchanged)",
        "// ... existing handlers",
        "# The rest of the file stays the same.",
        "# Existing code remains unchanged",
        "# ... [rest of the methods] ...",
        '"""... unchanged ..."""',
        "# other functions as before",
        "{/* ... other components ... */}",
        "{# rest of template unchanged #}",
        "% rest of document",
    ],
)
def test_words_in_the_place_of_code_are_refused(marker: str) -> None:
    assert reason("f.py", CODE, f"def a():\n    return 10\n\n\n{marker}\n") == "elision"
    assert reason("f.py", CODE + marker + "\n", f"def a():\n    return 10\n\n\n{marker}\n") == ""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("f.py", "# ... and then the existing users are told"),
        ("f.py", "# The rest of the arguments goes to the parser"),
        ("f.py", "x = '# ... existing code ...'"),
        ("f.py", "    def f(self) -> int: ..."),
        ("f.py", "x: tuple[int, ...] = ()"),
        ("f.py", "# Later: ..."),
        ("f.py", "# see the previous section of the manual"),
        ("f.js", "const { a, ...rest } = b;"),
        ("f.js", "f(...rest);"),
        ("f.md", "Write `# ... existing code ...` nowhere."),
        ("f.md", "# ... existing code ..."),
        ("f.yaml", "..."),
        ("f.sh", 'echo "Loading the rest..."'),
    ],
)
def test_lines_that_only_look_like_it_are_fine(path: str, line: str) -> None:
    assert reason(path, CODE, f"{CODE}\n{line}\n") == ""


@pytest.mark.parametrize("path", ["f.py", "Makefile", "f.sql", "f.html"])
def test_a_certain_marker_is_refused_in_a_new_file_too(path: str) -> None:
    assert reason(path, None, "x\n# ... existing code ...\n") == "elision"


@pytest.mark.promise("CHG-34")
@pytest.mark.parametrize(
    "lines",
    [
        "<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> x\n",
        "<<<<<<< SEARCH\n",
        ">>>>>>> REPLACE\n",
        "    return 1\n=======\n",
        "||||||| base\n",
        "------- SEARCH\n",
        "+++++++ REPLACE\n",
    ],
)
def test_leftovers_of_merges_and_edit_blocks_are_refused(lines: str) -> None:
    assert reason("f.py", CODE, CODE + lines) == "conflict_markers"
    assert reason("f.py", CODE + lines, CODE + lines + "x = 1\n") == ""


def test_underlines_and_quoted_conflicts_are_fine() -> None:
    assert reason("f.rst", "a\n", "a\n\nExample\n=======\n") == ""
    assert reason("f.py", CODE, f'"""Doc\n\nExample\n=======\n"""\n{CODE}') == ""
    assert reason("f.md", "a\n", "a\n```\n<<<<<<< HEAD\n```\n") == ""
    assert reason("f.md", "a\n", "a\n<<<<<<< HEAD\n") == "conflict_markers"


@pytest.mark.promise("CHG-34")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("f.py", "import os\\n\\n\\ndef f():\\n    return 1\\n"),
        ("f.py", "# don't\\nimport os\\nx = 'a'\\n"),
        ("f.py", '"""Doc."""\\n\\nimport os\\n'),
        ("f.py", "import os\nx = 1\\nprint(x)\n"),
        ("f.js", "const a = 1;\\nconst b = 2;\n"),
        ("f.md", "# Title\\n\\nText.\\n"),
        ("f.yaml", "a: 1\\nb: 2\\nc: 3\n"),
        ("Makefile", "all:\\n\\techo hi\\n"),
    ],
)
def test_a_backslash_and_an_n_for_a_line_break_are_refused(path: str, text: str) -> None:
    assert reason(path, None, text) == "escaped_breaks"
    assert reason(path, CODE, text) == "escaped_breaks"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("f.py", 'print("a\\nb\\n")\n'),
        ("f.py", "x = re.sub(r'\\s*\\n', '\\n', y)\n"),
        ("f.py", "# ends with \\n or \\r\\n\nx = 1\n"),
        ("f.py", 'x = """\na\\nb\\nc\n"""\n'),
        ("f.js", "x.split(/\\r?\\n/g)\n"),
        ("f.js", "const x = `a\\nb\n c\\nd`;\n"),
        ("f.tex", "\\noindent\\newline\n"),
        ("f.json", '{"a": "b\\nc\\nd"}\n'),
        ("f.sh", "tr '\\n' ' '\nprintf 'a\\nb\\n'\n"),
        ("f.md", "Lines end with `\\n`, not with `\\r\\n`.\n"),
        ("f.c", "char c = '\\n';\nputs(\"a\\n\");\n"),
        ("f.bat", "cd C:\\new\\next\n"),
    ],
)
def test_escapes_where_they_belong_are_fine(path: str, text: str) -> None:
    assert reason(path, None, text) == ""
    assert reason(path, "a\nb\n", text) == ""


def test_code_that_is_escaped_for_html_is_refused_where_it_has_no_place() -> None:
    assert reason("f.py", "x\n", "if a &lt; b:\n    pass\n") == "suspicious_text"
    assert reason("f.py", "x\n", "x = 'a &lt; b'  # &amp;\n") == ""
    assert reason("f.py", "x\n", 'x = """\n<p>a &lt; b</p>\n"""\n') == ""
    assert reason("f.html", "x\n", "<p>a &lt; b</p>\n") == ""
    assert reason("f.tsx", "x\n", "<p>a &lt; b</p>\n") == ""


def test_scripts_that_need_invisible_characters_keep_them() -> None:
    assert reason("f.py", "x\n", "x = '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'\n") == ""
    assert reason("f.py", "x\n", "x = '\U0001f468\u200d\U0001f469'\n") == ""
    assert reason("f.py", "x\n", "user\u200d_id = 1\n") == "suspicious_text"
    assert reason("f.py", "a\u202eb\n", "a\u202eb\nc\n") == ""
