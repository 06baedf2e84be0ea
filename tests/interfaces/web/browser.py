"""Which Chromium the tests of the page use, and how it is started; run as a program, it installs one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
MISSING = (
    "There is no Chromium for the tests of the web page. Install one: `apt-get install chromium`, or "
    "`.venv/bin/playwright install chromium`."
)


def installed_by_playwright() -> str:
    """The newest browser that `playwright install chromium` has put into its folder."""
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    found = sorted(folder.glob("chromium*/chrome-linux*/*"))
    names = [each for each in found if each.name in ("chrome", "headless_shell", "chrome-headless-shell")]
    return str(names[-1]) if names else ""


def find_chromium() -> str:
    """The path of a browser; raises FileNotFoundError where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    if found := installed_by_playwright():
        return found
    raise FileNotFoundError(MISSING)


def install_chromium() -> None:
    """Install the system's package where this user may, else Playwright's own."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        system = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "-qq", *step], env=system, check=False)
        if shutil.which("chromium"):
            return
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> None:
    try:
        find_chromium()
    except FileNotFoundError:
        sys.stderr.write("installing Chromium for the tests of the web page, once\n")
        install_chromium()
        try:
            find_chromium()
        except FileNotFoundError as missing:
            sys.exit(str(missing))


if __name__ == "__main__":
    main()
