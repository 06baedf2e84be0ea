"""docs/parity.md is what the code offers, and every gap has a reason."""

import pytest

from handrail.interfaces.cli.command_list import COMMANDS as SHELL
from handrail.interfaces.cli.conversation.slash import COMMANDS as SLASH
from handrail.interfaces.http.api.table import ENDPOINTS
from tests.project import parity

WHERE = "add it to a row of tests/project/parity.py"


@pytest.mark.promise("PAR-1")
def test_every_command_is_in_the_table() -> None:
    shell = {name for row in parity.ROWS for name in row.shell}
    slash = {name for row in parity.ROWS for name in row.slash}
    http = {name for row in parity.ROWS for name in parity.endpoints_of(row)}
    assert set(SHELL) <= shell, WHERE
    assert set(SLASH) | parity.page_commands() <= slash, WHERE
    assert {f"{each.method} {each.path}" for each in ENDPOINTS} <= http, WHERE
    acp, tools = parity.acp_commands(), parity.mcp_tools()
    assert (acp[0] if acp else set()) <= slash, WHERE
    assert (tools or set()) <= {name for row in parity.ROWS for name in row.mcp}, WHERE


@pytest.mark.promise("PAR-1")
def test_slash_commands_that_an_editor_does_not_offer_say_why() -> None:
    acp = parity.acp_commands()
    assert acp is not None
    offered, reasons = acp
    assert set(SLASH) - offered == set(reasons)


@pytest.mark.promise("PAR-1")
def test_what_an_interface_lacks_has_a_reason() -> None:
    gaps = [
        f"{row.what}: {column}"
        for row in parity.ROWS
        if parity.exists(row)
        for column in parity.shown_columns()
        if not parity.cells(row)[column] and not parity.reason(row, column)
    ]
    assert gaps == [], "offer it there, or say why not in tests/project/parity.py"


@pytest.mark.promise("PAR-1")
def test_page_is_what_the_code_offers() -> None:
    written = parity.PAGE.read_text("utf-8")
    assert written == parity.document(), "write it again: python -m tests.project.parity"
