"""`python -m bench.verify`: overhead; `--seeded`: 30 defects; `--real`: packages from the registry."""

import argparse

from bench.verify import overhead, real, seeded


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verify", description=__doc__)
    parser.add_argument("--seeded", action="store_true", help="put 30 defects into a project, one by one")
    parser.add_argument(
        "--real", action="store_true", help="compare with the tools of real packages; downloads"
    )
    options = parser.parse_args()
    if options.seeded:
        seeded.run()
    if options.real:
        real.run()
    if not options.seeded and not options.real:
        for row in overhead.measure():
            print(f"{row.name}: {row.milliseconds:,.0f} ms, {row.ratio:.2f} times {row.against}", flush=True)


if __name__ == "__main__":
    main()
