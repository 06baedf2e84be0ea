"""Limits of the kernel on a confined command.

Address space is not limited: Node, Java, Go and sanitizers reserve far more of it than they use. Memory and
the processors take a cgroup, which a user without rights does not have everywhere.
"""

FILE_BYTES = 8 << 30
"""The largest file that can be written."""
OPEN_FILES = 65_536
"""Of one process."""
PROCESSES = 2_048
"""Threads included; only where the kernel counts them for the sandbox alone."""
