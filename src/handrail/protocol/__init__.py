"""The words every room shares: ids, values, commands, events, errors. Imports pydantic and nothing else."""
