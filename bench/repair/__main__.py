"""`python -m bench.repair`: small tasks, one small model, several harnesses; hidden tests decide."""

import argparse
import os
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

from bench.peers import PEERS
from bench.repair import results
from bench.repair.harnesses import HARNESSES, Setting
from bench.repair.model_server import computed, model_server
from bench.repair.results import Record
from bench.repair.tasks import PARTS, Task, all_tasks, part_of_tasks
from bench.repair.workspace import score, workspace

LIMIT_SECONDS = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.repair", description=__doc__)
    parser.add_argument("--harness", default=",".join(HARNESSES), help="names, with commas between")
    parser.add_argument(
        "--tasks", default="*", help="names or patterns, with commas between, such as 'invoice-*'"
    )
    parser.add_argument(
        "--part",
        choices=PARTS,
        default="all",
        help="tuned and kept-back are halves; short is a third of the latter",
    )
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds for one task")
    parser.add_argument("--report", action="store_true", help="only print the table of what was measured")
    parser.add_argument("--again", action="store_true", help="also run what has a result already")
    parser.add_argument(
        "--results", type=Path, default=results.FILE, help="the file that results are added to"
    )
    parser.add_argument(
        "--handrail",
        type=Path,
        default=Path(sys.executable).with_name("handrail"),
        help="the program to measure, of this clone by default",
    )
    options = parser.parse_args()
    names = options.harness.split(",")
    if unknown := set(names) - set(HARNESSES):
        raise SystemExit(
            f"There is no harness {', '.join(sorted(unknown))}; known are {', '.join(HARNESSES)}."
        )
    tasks = [
        task
        for task in part_of_tasks(all_tasks(), options.part)
        if any(fnmatch(task.name, each) for each in options.tasks.split(","))
    ]
    if not tasks:
        raise SystemExit(f"No task is named {options.tasks}.")
    if not options.report:
        if "samples" in names and "build" not in names and not _builds(options.results):
            raise SystemExit(
                f"samples get the tokens that build took, and {options.results} has no result of build: "
                "use --harness build,samples."
            )
        for peer in PEERS:
            if peer.name in names and not peer.installed:
                raise SystemExit(f"{peer.name} is not here: python -m bench.peers --install {peer.name}")
        measure([name for name in HARNESSES if name in names], tasks, options)
    wanted = {task.name for task in tasks}
    found = [
        record
        for (harness, task), record in results.load(options.results).items()
        if harness in names and task in wanted
    ]
    print(results.table(found) if found else f"There are no results in {options.results}.")


def measure(names: list[str], tasks: list[Task], options: argparse.Namespace) -> None:
    """Run what has no result yet; each result is stored at once, so a killed run goes on where it was."""
    known = {} if options.again else results.load(options.results)
    version = _version(options.handrail)
    with model_server() as server:
        for name in names:
            for task in tasks:
                if (name, task.name) in known:
                    continue
                budget = _budget(task, options.results) if name == "samples" else 0
                record = run_one(name, task, Setting(server, options.handrail, options.limit, budget))
                logs = options.results.with_suffix(".logs")
                logs.mkdir(parents=True, exist_ok=True)
                (logs / f"{name}-{task.name}.txt").write_text(record.pop("log"))
                results.append(options.results, record | {"version": version, "limit": options.limit})
                verdict = "solved" if record["hidden"] and record["visible"] else "not solved"
                print(
                    f"{name} {task.name}: {verdict}, {record['seconds']:.0f} s, {record['end'][:200]}",
                    flush=True,
                )


def run_one(name: str, task: Task, setting: Setting) -> Record:
    """One task through one harness, scored."""
    with workspace(task) as place:
        proxy = setting.server.proxy
        proxy.begin()
        began = time.monotonic()
        outcome = HARNESSES[name](task, place, setting)
        seconds = time.monotonic() - began
        setting.server.check()
        answers, tokens = list(proxy.answers), proxy.tokens()
        proxy.begin()
        scored = score(task, place)
    texts = [answer.text.strip() for answer in answers if answer.text]
    return {
        "harness": name,
        "task": task.name,
        "kind": task.kind,
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        **scored._asdict(),
        **outcome._asdict(),
        "seconds": round(seconds, 1),
        "tokens": tokens,
        "answers": len(answers),
        "equal_answers": len(texts) - len(set(texts)),
        "budget": setting.tokens,
        "load": round(os.getloadavg()[0], 1),
    }


def _budget(task: Task, file: Path) -> int:
    """Computed tokens for samples of this task: what build took, and at least what it takes on the median."""
    took = _builds(file)
    return int(max(took.get(task.name, 0), median(took.values())))


def _builds(file: Path) -> dict[str, int]:
    """Computed tokens of build, by task."""
    return {
        task: computed(record["tokens"])
        for (harness, task), record in results.load(file).items()
        if harness == "build"
    }


def _version(handrail: Path) -> str:
    """What is measured: the commit of its clone, where there is one."""
    folder = handrail.resolve().parents[2]
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=False
    )
    return said.stdout.strip()


if __name__ == "__main__":
    main()
