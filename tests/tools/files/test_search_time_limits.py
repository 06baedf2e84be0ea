"""Work that is done while nothing else happens has an end, whatever it is done on."""

import subprocess
import sys

import pytest

from tests.tools.calls import Bench

LONG_NAME = "interfaces_cli_rendering_markdown.py"


@pytest.mark.promise("TOOL-15")
@pytest.mark.parametrize(
    "code",
    [
        f"covers('{{*,*}}' * 12 + 'Z', '{LONG_NAME}')",
        "covers('*a' * 40 + 'b', 'a' * 250)",
        "covers('{' * 3000 + '}' * 3000, 'a')",
        "re.fullmatch(name_regex('*a' * 40 + 'b'), 'a' * 250)",
        "html_to_text('<pre>x' * 160_000)",
        "html_to_text('<pre>x' + ' ' * 900_000 + 'x')",
        "html_to_text('<title><body>' * 70_000)",
        "html_to_text('<pre>' * 90_000 + '</textarea>' * 40_000)",
        "html_to_text('<a ' * 300_000)",
        "html_to_text('<![' * 300_000)",
    ],
)
def test_what_was_made_to_take_for_ever_does_not(code: str) -> None:
    imports = (
        "import re\n"
        "from handrail.protocol.globs import covers, name_regex\n"
        "from handrail.tools.web.html_text import html_to_text\n"
    )
    subprocess.run([sys.executable, "-c", imports + code], check=True, timeout=60)


@pytest.mark.promise("TOOL-15")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("glob", {"pattern": "*" * 201}),
        ("read", {"path": "a/" * 500_000}),
        ("list", {"path": "é" * 2_049}),
        ("edit", {"path": "a", "edits": [{"search": "a", "replace": "b"}] * 101}),
    ],
)
async def test_arguments_beyond_any_use_are_refused(
    bench: Bench, tool: str, arguments: dict[str, object]
) -> None:
    finished = await bench.call(tool, **arguments)
    assert finished.error is not None
    assert finished.error.reason in ("invalid_arguments", "invalid_path")
    assert len(finished.content) < 1_000
