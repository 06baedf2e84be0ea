"""`handrail` and `python -m handrail`."""

import gc
import sys


def main() -> None:
    """Run the program and leave with its exit status."""
    # What is imported stays. To look through it for garbage takes a tenth of the start, and as long again
    # at the end, when Python takes everything apart.
    gc.disable()
    from handrail.interfaces.cli.main import run_cli

    status = run_cli(sys.argv[1:])
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder: modules of a workspace would be run
    main()
