"""What the doctor is told of the embedded model."""

import os
import re
from pathlib import Path

import pytest

from handrail.models.embedded.embedded_model import EmbeddedModel
from handrail.models.embedded.model_files import LOCAL_MODEL_VARIABLE, SMOLLM2, models_folder
from handrail.models.embedded.status import embedded_status
from handrail.models.model import Request, UserTurn
from handrail.models.reading.collector import collect_answer

pytestmark = pytest.mark.anyio


@pytest.mark.promise("EMB-13")
async def test_what_is_missing_is_told_with_the_command_that_brings_it(tmp_path: Path) -> None:
    found = await embedded_status(os.environ)
    assert (found.level, found.advice) == ("-", "handrail model fetch downloads it (1,117 MB)")
    folder = models_folder(os.environ)
    folder.mkdir(parents=True)
    part = folder / f"{SMOLLM2.name}.part"
    part.write_bytes(bytes(2_000_000))
    found = await embedded_status(os.environ, SMOLLM2)
    assert (found.level, found.advice) == ("warn", "handrail model fetch continues")
    assert "2 MB of 98 MB" in found.text
    part.rename(folder / SMOLLM2.name)
    found = await embedded_status(os.environ, SMOLLM2)
    assert (found.level, found.advice) == ("fail", "handrail model fetch replaces it")
    found = await embedded_status({**os.environ, LOCAL_MODEL_VARIABLE: str(tmp_path / "gone")})
    assert found.level == "fail"
    assert "does not exist" in found.advice


@pytest.mark.promise("EMB-13")
async def test_a_running_child_is_told_with_port_memory_and_speed(models: Path) -> None:
    found = await embedded_status(os.environ, SMOLLM2)
    assert found.level == "ok"
    assert "not running" in found.text
    assert re.search(r"with \d+ threads? and [\d,]+ MB of memory", found.text)
    model = EmbeddedModel(SMOLLM2, models / SMOLLM2.name, models, grace=0.5)
    try:
        await collect_answer(model.stream(Request("", (UserTurn("Say hello."),), max_output_tokens=4)))
        running = model.child.running()
        assert running is not None
        found = await embedded_status(os.environ, SMOLLM2)
        assert found.level == "ok"
        assert f"port {running.url.rpartition(':')[2]}" in found.text
        assert " MB of memory" in found.text
        assert "tokens/s in" in found.text
        assert "tokens/s out" in found.text
        assert re.search(r"limited to \d+ threads? and [\d,]+ MB of memory", found.text)
    finally:
        await model.aclose()
        await model.child.stop()
