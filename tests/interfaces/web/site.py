"""`handrail serve` in a workspace of its own, with a scripted model."""

import hashlib
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from handrail.protocol.values import HASH_DIGITS
from tests.interfaces.cli.program import DEADLINE, command, environment, run, script

ADDRESS = re.compile(r"Handrail is at (http://\S+)")
CART = """\
def total(items, tax, discount):
    subtotal = sum(price * n for price, n in items)
    return (subtotal + tax) * (1 - discount)
"""


class Site:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "src").mkdir(parents=True)
        (root / "src" / "cart.py").write_text(CART)
        (root / "README.md").write_text("# Shop\n")
        self.process: subprocess.Popen[str] | None = None
        self.address = ""
        self._port = "0"
        self._errors = root.parent / "server-errors"
        self._model = ""
        self.folders: list[Path] = []
        """What is served; empty: the workspace alone."""

    def script(self, *answers: dict[str, Any], **options: Any) -> str:
        """The name of a model that gives these answers."""
        if not options:
            return script(self.root.parent, *answers)
        path = self.root.parent / "script.json"
        path.write_text(json.dumps({"answers": list(answers), **options}), encoding="utf-8")
        return f"scripted/{path}"

    def start(self, *answers: dict[str, Any], **changes: str) -> str:
        """Serve the workspace; its address, with the token."""
        self._model = self.script(*answers) if answers else self._model
        options = ["--model", self._model] if self._model else []
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(
                command("serve", "--port", self._port, *options, *map(str, self.folders)),
                cwd=self.root,
                env=environment(**changes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.process = process
        assert process.stdout
        for line in process.stdout:
            if found := ADDRESS.search(line):
                self.address = found[1]
                self._port = self.address.rpartition(":")[2].partition("/")[0]
                return self.address
        raise AssertionError("the server has ended without an address")

    def kill(self) -> None:
        """End it as a crash would."""
        assert self.process
        self.process.kill()
        self.process.wait(DEADLINE)
        self._close()

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(DEADLINE)
        self._close()
        if self._errors.exists():
            assert "Traceback" not in self._errors.read_text()

    def _close(self) -> None:
        if self.process and self.process.stdout:
            self.process.stdout.close()

    def open(self, page: Page, *answers: dict[str, Any], path: str = "", **changes: str) -> None:
        """Serve the workspace and open its page."""
        self.start(*answers, **changes)
        page.goto(self.address)
        if path:
            page.goto(self.place(path))
        ready(page)

    def place(self, path: str, workspace: str = "shop") -> str:
        return f"{self.address.partition('?')[0]}w/{workspace}/{path}"

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another process of Handrail in the same workspace."""
        return run(*arguments, cwd=self.root)


def ready(page: Page) -> None:
    page.wait_for_selector("html[data-ready]")


def send(page: Page, text: str) -> None:
    """Type a message and send it; waits for the session's own page where it is the first."""
    page.fill("#message", text)
    page.press("#message", "Enter")
    expect(page.locator(".user .bubble").last).to_have_text(text)
    ready(page)


def last_turn(page: Page) -> Locator:
    return page.locator("#log > .turn").last


def ended(page: Page) -> Locator:
    """The line at the end of the last turn, once it is there."""
    line = last_turn(page).locator(".turn-end")
    expect(line).to_be_visible()
    return line


def read(path: str) -> dict[str, Any]:
    return {"name": "read", "arguments": {"path": path}}


def edit(site: Site, path: str, old: str, new: str) -> dict[str, Any]:
    """A call that replaces text in a file as it is now."""
    digits = hashlib.sha256((site.root / path).read_bytes()).hexdigest()[:HASH_DIGITS]
    edits = [{"search": old, "replace": new}]
    return {"name": "edit", "arguments": {"path": path, "base_hash": digits, "edits": edits}}
