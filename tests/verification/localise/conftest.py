"""Tests that need a program which `make test` does not install are left out where it is missing."""

from handrail.tools.process import find_program

collect_ignore = [] if find_program("node") else ["test_node.py"]
