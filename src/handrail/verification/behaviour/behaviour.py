"""What functions do for inputs near those of the tests: two versions that pass the tests can be told apart.

The tests run once more with a plugin of pytest, in the sandbox. Where the project's tests run with anything
else, nothing is known.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.verification.check import REPORT_FOLDER, Check

INJECTED = Path(__file__).parent / "injected"
PLUGIN, PREFIX = "handrail_behaviour", "behaviour-"
TOOL = "pytest"

Function = tuple[str, str]
"""Its file and its full name, such as `Cart.total`."""
Behaviour = Mapping[tuple[str, str], str]
"""Results by function (`a.py:Cart.total`) and arguments."""


class Difference(NamedTuple):
    function: str
    arguments: str
    one: str
    other: str

    @property
    def words(self) -> str:
        name = self.function.rpartition(":")[2]
        return f"`{name}{self.arguments}` gives `{self.one}` with one and `{self.other}` with the other"


def watched(check: Check, functions: Sequence[Function], root: Path, path: str) -> Check:
    """The check with the plugin, for functions by file and full name; `path` is the PYTHONPATH so far."""
    variables = {
        "HANDRAIL_BEHAVIOUR_FOLDER": REPORT_FOLDER,
        "HANDRAIL_BEHAVIOUR_ROOT": str(root),
        "HANDRAIL_BEHAVIOUR_FUNCTIONS": json.dumps(functions),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(INJECTED), path))),
    }
    return check._replace(words=(*check.words, "-p", PLUGIN), environ={**check.environ, **variables})


def read_behaviour(files: Mapping[str, bytes]) -> Behaviour:
    """What the plugin wrote; a line that was cut short is left out."""
    found: dict[tuple[str, str], str] = {}
    for name, data in files.items():
        if not name.startswith(PREFIX):
            continue
        for line in data.decode(errors="replace").splitlines():
            try:
                function, arguments, result = json.loads(line)
            except ValueError:
                continue
            found.setdefault((function, arguments), result)
    return found


def first_difference(one: Behaviour, other: Behaviour) -> Difference | None:
    """The shortest input, among those of both, for which they differ; None where there is none."""
    found = [
        Difference(*key, result, other[key])
        for key, result in one.items()
        if key in other and other[key] != result
    ]
    return min(found, key=lambda each: len(each.arguments), default=None)
