"""Find the parts of a project and the checks that each is set up for."""
