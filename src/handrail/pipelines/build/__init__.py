"""The verified build: plan, audit, execute, document, verify; complete only when the checks agree."""
