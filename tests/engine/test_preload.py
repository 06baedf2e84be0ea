import subprocess
import sys

import pytest

PRELOADS = """
import sys, time
from handrail.engine import preload
preload.AFTER_SECONDS = 0
before = set(preload.MODULES) & set(sys.modules)
limit = time.monotonic() + 60
with preload.preloading():
    while not set(preload.MODULES) <= set(sys.modules) and time.monotonic() < limit:
        time.sleep(0.01)
print(sorted(before), sorted(set(preload.MODULES) - set(sys.modules)))
"""
STOPS = """
import sys
from handrail.engine import preload
with preload.preloading():
    pass
print(sorted(set(preload.MODULES) & set(sys.modules)))
"""


def printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.promise("START-2")
def test_what_calls_need_is_imported_while_the_model_answers() -> None:
    assert printed(PRELOADS) == "[] []\n"


@pytest.mark.promise("START-2")
def test_an_answer_that_comes_at_once_is_not_delayed_by_imports() -> None:
    assert printed(STOPS) == "[]\n"
