"""The same in JavaScript, with the node of this machine: conftest leaves this file out if there is none."""

import os
import re
from pathlib import Path

import pytest

from handrail.tools.process import find_program
from handrail.tools.reports.issue import Issue
from handrail.verification.localise.localise import SuiteRun, localise
from tests.verification.localise.node_seeded import NODE, NODE_BUGS
from tests.verification.localise.test_localise import ranks, runs_in, seeded, told

pytestmark = pytest.mark.anyio
NOT_OK = re.compile(r"not ok \d+ - (.+)\n +---\n(?: +.*\n)*? +location: '(.+?):(\d+):\d+'")


@pytest.mark.promise("LOC-1")
async def test_wrong_lines_in_javascript_are_among_the_first_five_suspects(tmp_path: Path) -> None:
    lines = {}
    for number, bug in enumerate(NODE_BUGS):
        source, tests, names = NODE[bug.module]
        name = f"{bug.module}{number}"
        text, lines[name] = seeded(bug, source)
        (tmp_path / f"{name}.js").write_text(text)
        (tmp_path / f"{name}.test.js").write_text(f'const {{ {names} }} = require("./{name}.js");\n{tests}')
    words = (find_program("node") or "node", "--test", "--test-reporter=tap")
    output = (await runs_in(tmp_path)(words, {}))["output"].decode()
    issues = [
        Issue("tests", "high", "failed", os.path.relpath(path, tmp_path), int(line), test=name)
        for name, path, line in NOT_OK.findall(output)
    ]
    done = await localise(issues, SuiteRun("node", words, tmp_path, tmp_path, os.environ), runs_in(tmp_path))
    assert not done.problem
    found = {name: ranks(done, f"{name}.js", line, f"{name}.test.js") for name, line in lines.items()}
    assert sum(any(each) for each in found.values()) >= 4, told(found)  # of 6
