# The four commands. Each installs what it needs into .venv first, and again when the pins change.
#
#   make run                      open the conversation in a fresh copy of an example (EXAMPLE=cart);
#                                 without a terminal, serve the web page and print its address
#   make run WORKSPACE=FOLDER     open it in a folder of your own
#   make run TASK="fix the test"  do one task, in a fresh copy of an example or in WORKSPACE
#   make test                     what CI runs: lint, then every test
#   make lint                     ruff, mypy --strict, import contracts
#   make bench                    measure
#   make screenshots              draw the pictures of the web page in docs/images again

VENV := .venv
BIN := $(VENV)/bin
WORKSPACE ?=
EXAMPLE ?= cart

# The text of TASK reaches the program through the environment as it was typed: no make or shell reads it.
override TASK := $(value TASK)
override WORKSPACE := $(value WORKSPACE)
override EXAMPLE := $(value EXAMPLE)
export TASK WORKSPACE EXAMPLE

.PHONY: help run test lint bench browser mcp-programs postgres screenshots
help:
	@sed -n 's/^#   //p' Makefile

run: $(VENV)/.run-installed
	@program="$$PWD/$(BIN)/handrail"; \
	if [ -z "$$WORKSPACE" ]; then exec examples/try "$$program"; fi; \
	cd -- "$$WORKSPACE" || exit 2; \
	if [ -n "$$TASK" ]; then exec "$$program" run -- "$$TASK"; fi; \
	if [ -t 0 ] && [ -t 1 ]; then exec "$$program"; else exec "$$program" serve; fi

test: lint browser mcp-programs postgres
	@$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal

CHECKED = src tests $(wildcard bench)
lint: $(VENV)/.dev-installed
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@$(BIN)/mypy $(CHECKED)
	@$(BIN)/lint-imports

# Chromium for the tests of the web page: the one that is here, else one that is installed now.
browser: $(VENV)/.dev-installed
	@$(BIN)/python -m tests.interfaces.web.browser

# The public MCP conformance suite and reference servers, which the tests of MCP run.
mcp-programs: $(VENV)/.dev-installed
	@$(BIN)/python -m tests.mcp.conformance

# PostgreSQL for the tests of shared logs: the one that is here, else Debian's; each test run starts its own.
postgres: $(VENV)/.dev-installed
	@$(BIN)/python -m tests.postgres

screenshots: browser
	@$(BIN)/python -m tests.interfaces.web.screenshots docs/images

bench: $(VENV)/.dev-installed
	@$(BIN)/python -m bench

NEW_ENOUGH = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
INSTALL = $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt

# A link to the system's Python: when that one is gone, everything is installed again.
$(shell test -x $(BIN)/python || rm -f $(VENV)/.run-installed $(VENV)/.dev-installed)
$(BIN)/python:
	@for name in python3.14 python3.13 python3.12 python3.11 python3 none; do \
	  if "$$name" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then break; fi; \
	done; \
	if [ "$$name" = none ]; then \
	  echo "Handrail needs Python 3.11 or newer with its venv module; found: $$(python3 --version 2>&1)." >&2; \
	  echo "Install it (Debian, Ubuntu: python3 and python3-venv; macOS: brew install python) and run make again." >&2; \
	  exit 1; \
	fi; \
	echo "making .venv with $$("$$name" --version)"; \
	"$$name" -m venv --clear $(VENV)

$(VENV)/.run-installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing Handrail into .venv, once"
	@$(INSTALL) --editable '.[embedded]'
	@touch $@

$(VENV)/.dev-installed: $(VENV)/.run-installed
	@echo "installing the development tools into .venv, once"
	@$(INSTALL) --editable '.[dev,distributed,embedded,knowledge,providers,telemetry]'
	@touch $@
