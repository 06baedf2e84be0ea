"""`python -m bench.small_model`: one-line bugs put right by the embedded model, or not, says their test."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (ROOT / "examples", ROOT / "bench" / "bugs")
TASK = "make the failing test pass"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.small_model", description=__doc__)
    parser.add_argument("names", nargs="*", help="those of the bugs; all when none is named")
    parser.add_argument("--attempts", default="12")
    options = parser.parse_args()
    bugs = [each.parent for folder in FOLDERS for each in sorted(folder.glob("*/CHECK"))]
    bugs = [bug for bug in bugs if not options.names or bug.name in options.names]
    print("| bug | check | answers | wasted | seconds |\n| --- | --- | ---: | ---: | ---: |")
    fixed = sum(fix(bug, options.attempts) for bug in bugs)
    print(f"\n{fixed} of {len(bugs)}")


def fix(bug: Path, attempts: str) -> bool:
    """Whether the model put it right; says how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, bug.name)
        shutil.copytree(bug, work)
        check = (work / "CHECK").read_text().strip()
        words = ["run", "--mode", "auto", "--json", "--check", check, "--attempts", attempts, "--", TASK]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "handrail", *words],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    tried = [event["result"] for event in events if event.get("type") == "candidate_tried"]
    wasted = sum(result in ("unchanged", "repeated") for result in tried)
    verdict = "passes" if done.returncode == 0 else f"status {done.returncode}"
    print(f"| {bug.name} | {verdict} | {len(tried)} | {wasted} | {seconds:.0f} |", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
