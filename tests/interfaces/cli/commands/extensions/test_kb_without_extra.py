"""`handrail kb` in the plain installation, which has none of the libraries of the extra `knowledge`."""

import sys
from pathlib import Path

import pytest

from handrail.config.extras import install_command
from tests.interfaces.cli.program import run
from tests.knowledge.samples import make_pdf
from tests.knowledge.test_base import STANDARD
from tests.project.source import ROOT

BLOCKED = ("numpy", "tokenizers", "pypdf", "docx", "lxml")


@pytest.mark.promise("KB-18")
def test_every_command_works_and_a_pdf_says_what_to_install(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"import sys\nsys.modules |= dict.fromkeys({BLOCKED})\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / "standard.md").write_text(STANDARD)
    (work / "good.pdf").write_bytes(make_pdf(["The old whale"]))
    (work / "page.html").write_text("<title>Page</title><p>The lighthouse of Velmora is white.</p>")

    def kb(*arguments: str, status: int = 0) -> str:
        done = run("kb", *arguments, cwd=work, PYTHONPATH=f"{site}:{ROOT / 'src'}")
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    install = install_command("knowledge")
    assert install.startswith(f"{sys.executable} -m pip install --editable ")
    added = kb("add", ".", status=1)
    assert "2 added, 1 failed." in added
    assert f"good.pdf: needs libraries that are missing. Run `{install}`." in added
    assert "stopped" not in added
    assert install in kb("status")
    assert "inspects each boat" in kb("search", "who inspects each boat")
    kb("list")
    assert install in kb("index", status=1)
    kb("verify")
    kb("verify", "The harbour office inspects each boat")
    assert install in kb("fetch", "--yes", status=2)
    kb("remove", "standard.md")
    kb("verify")
