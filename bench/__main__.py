"""`python -m bench`: all measurements as a table, and as JSON in bench/results."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from bench import first_request, long_session
from bench.timing import Measured, median_ms, python_pass_ms

RESULTS = Path(__file__).parent / "results"


def start_up(python: float) -> Iterator[Measured]:
    for name in ("--version", "--help"):
        arguments = [sys.executable, "-m", "handrail", name]
        spent = median_ms(partial(subprocess.run, arguments, check=True, capture_output=True), 15)
        yield Measured(f"handrail {name}", spent, "python -c pass", spent / python)


def main() -> None:
    python = python_pass_ms()
    print(f"python -c pass: {python:.1f} ms; every ratio is to what stands beside it, in this run\n")
    rows = []
    for row in chain(start_up(python), first_request.measure(python), long_session.measure()):
        rows.append(row)
        print(f"{row.name:<55} {row.milliseconds:>9.1f} ms   {row.ratio:>6.2f} x {row.against}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    facts = {
        "python_pass_ms": python,
        "machine": platform.platform(),
        "rows": [row._asdict() for row in rows],
    }
    target.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"\nwritten to {target.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
