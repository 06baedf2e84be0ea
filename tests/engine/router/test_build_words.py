"""Messages that ask for a verified build, and those that only sound like it."""

from pathlib import Path

import pytest

from handrail.engine.router.build_words import asks_for_build
from handrail.protocol.commands import SendMessage
from handrail.protocol.events import RunStarted, TurnFinished
from tests.engine.conversation import conversation

pytestmark = pytest.mark.anyio
BUILDS = """\
as a verified build: add a retry to the HTTP client
As a verified build, add a retry to the HTTP client.
Please do this as a verified build: add a retry to the HTTP client
Verified build: fix the rounding in calc.py
build this and verify it: fix the rounding in calc.py
Build the following and verify the result: fix the rounding in calc.py
Add a retry to the HTTP client as a verified build.
Fix the rounding in calc.py, as a verified build please
"""
NOT_BUILDS = """\
build this and verify it
build it and verify it.
as a verified build: it
build the docker image and verify it
build the project and verify that the tests pass
build a login page and verify it in the browser
Fix the rounding, and verify it
What is a verified build?
How does a verified build: plan, audit, execute?
Explain what happens as a verified build: which stages run
Can you do that as a verified build?
Fix calc.py, but not as a verified build
Don't do it as a verified build: just fix calc.py
Rename VerifiedBuild to Build
Document "as a verified build: fix calc.py" in README.md
Why does `verified build: x` fail
verified build
"""


@pytest.mark.promise("ROUTE-4")
@pytest.mark.parametrize("message", BUILDS.splitlines())
def test_message_that_asks_for_a_verified_build(message: str) -> None:
    assert asks_for_build(message)


@pytest.mark.promise("ROUTE-4")
@pytest.mark.parametrize("message", NOT_BUILDS.splitlines())
def test_message_that_does_not(message: str) -> None:
    assert not asks_for_build(message)


@pytest.mark.promise("ROUTE-4")
@pytest.mark.parametrize(
    ("mode", "pipeline"), [("edit", "build"), ("auto", "build"), ("plan", "plan-mode"), ("explore", "agent")]
)
async def test_words_choose_the_route_only_where_files_may_change(
    tmp_path: Path, mode: str, pipeline: str
) -> None:
    async with conversation(tmp_path, [{"text": "no"}] * 9, mode=mode, answerable=False) as talk:
        await talk.send(SendMessage(text="as a verified build: fix the rounding in calc.py", route="auto"))
        assert (await talk.until(RunStarted)).pipeline == pipeline
        await talk.until(TurnFinished)
