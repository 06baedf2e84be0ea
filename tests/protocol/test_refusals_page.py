"""docs/refusals.md lists every reason that a refusal can have, and no other."""

import re
from pathlib import Path
from typing import get_args

from handrail.protocol.errors import RefusalReason

PAGE = Path(__file__).parents[2] / "docs" / "refusals.md"


def test_the_page_lists_every_reason_once() -> None:
    listed = re.findall(r"^\| `([a-z_]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(get_args(RefusalReason))
