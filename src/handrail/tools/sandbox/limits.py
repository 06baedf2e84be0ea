"""Limits on a confined command.

Address space is not limited: Node, Java, Go and sanitizers reserve far more of it than they use. Memory takes
a control group, which a user without rights does not have everywhere; where there is none, it is watched.
"""

import os

FILE_BYTES = 8 << 30
"""The largest file that can be written."""
OPEN_FILES = 65_536
"""Of one process."""
PROCESSES = 2_048
"""Threads included, where the kernel counts them; where they are only watched, processes."""
MEMORY_SHARE = 2
"""A command and all that it starts may have one part in so many of the machine's memory."""


def most_memory() -> int:
    """Bytes of memory that one command may take."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MEMORY_SHARE
