"""`handrail` and `python -m handrail`."""

import gc
import sys


def main() -> None:
    """Run the program and leave with its exit status."""
    arguments = sys.argv[1:]
    # These two are answered before anything is imported that costs time.
    if arguments in (["--version"], ["-V"]):
        from handrail.interfaces.cli.catalogue import VERSION

        sys.stdout.write(VERSION)
    elif arguments in (["--help"], ["-h"]):
        from handrail.interfaces.cli.catalogue import help_text

        sys.stdout.write(help_text())
    else:
        # What is imported stays. To look through it for garbage takes a tenth of the start, and as long again
        # at the end, when Python takes everything apart.
        gc.disable()
        from handrail.interfaces.cli.entry import run

        status = run(arguments)
        gc.freeze()
        sys.exit(status)


if __name__ == "__main__":
    main()
