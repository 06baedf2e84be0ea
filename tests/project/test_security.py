"""docs/security.md claims nothing that no promise holds."""

import re

import pytest

from tests.project.test_promises import PROMISES, promised

ID = re.compile(r"\b[A-Z]+-[0-9]+\b")
TEXT = PROMISES.with_name("security.md").read_text()


@pytest.mark.promise("PROJ-5")
def test_every_claim_names_promises_that_exist() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and "---" not in line]
    claims = [row for row in rows if not row.endswith("| promises |")]
    mechanisms = re.findall(r"^[0-9]+\. .*(?:\n   .*)*", TEXT, re.MULTILINE)
    assert len(claims) > 20
    assert len(mechanisms) == 11
    assert [claim for claim in (*claims, *mechanisms) if not ID.search(claim)] == []
    assert set(ID.findall(TEXT)) - set(promised()) == set()
