"""The page with the model that comes with Handrail: nothing is scripted."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from handrail.models.embedded.model_files import LOCAL_MODEL_VARIABLE
from tests.conftest import NO_SERVER
from tests.interfaces.web.site import Site, last_turn, send

PATIENT_MS = 240_000
"""A real model on a busy machine takes its time."""
GREET = 'def greet(name):\n    return "Hello, " + name\n'


@pytest.mark.promise("WEB-15")
@pytest.mark.usefixtures("alone")
def test_small_model_is_asked_its_edit_approved_and_undone(
    site: Site, page: Page, home: Path, qwen: Path
) -> None:
    (home / "handrail").mkdir(mode=0o700)
    (home / "handrail" / "config.toml").write_text(NO_SERVER)
    for path in ("src/cart.py", "README.md"):
        (site.root / path).unlink()
    greet = site.root / "greet.py"
    greet.write_text(GREET)
    site.open(page, **{LOCAL_MODEL_VARIABLE: str(qwen)})
    send(page, 'In @greet.py, replace "Hello, " by "Welcome, "')
    page.locator(".card.change.waiting [data-act=approve]").first.click(timeout=PATIENT_MS)
    end = last_turn(page).locator(".turn-end")
    expect(end).to_be_visible(timeout=PATIENT_MS)
    assert '"Welcome, " + name' in greet.read_text()
    page.locator(".card.change [data-act=undo]").click()
    expect(page.locator(".card.change.undone")).to_contain_text("rolled back")
    assert greet.read_text() == GREET
    send(page, "What does @greet.py do? Answer in one sentence.")
    expect(end).to_be_visible(timeout=PATIENT_MS)
    expect(last_turn(page).locator(".answer").last).to_contain_text("greet")
