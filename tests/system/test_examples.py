"""The bundled examples, put right by the embedded model itself: no key, no network, nothing scripted."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.models.embedded.model_files import LOCAL_MODEL_VARIABLE
from tests.interfaces.cli.program import environment

EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE = 600.0


@pytest.mark.promise("EMB-19")
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("example", ["leap-year", "todo-js"])
def test_an_example_is_put_right_by_the_embedded_model(example: str, qwen: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    program = Path(sys.executable).with_name("handrail")
    task = environment(
        TASK="make the failing test pass", EXAMPLE=example, **{LOCAL_MODEL_VARIABLE: str(qwen)}
    )
    done = subprocess.run(
        [tmp_path / "examples" / "try", program],
        env=task,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fixed = tmp_path / ".try" / example
    check = ["sh", "-c", (fixed / "CHECK").read_text()]
    assert subprocess.run(check, cwd=fixed, capture_output=True, check=False).returncode == 0
    for test in EXAMPLES.joinpath(example).glob("*test*"):
        assert (fixed / test.name).read_bytes() == test.read_bytes()
