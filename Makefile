# Everything here works from a clean clone with nothing but Python 3.11+ and make. Dependencies are installed
# into .venv from the hashed lock files in requirements/, from wherever your pip is configured to look.

VENV    := .venv
BIN     := $(VENV)/bin
LOCKING := .tools/lock
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTHON  ?=
ARGS    ?=
NAME    ?=
UPGRADE ?=

# `make bench devices` is `make bench NAME=devices`: the words after `bench` are names, not goals.
ifeq (bench,$(firstword $(MAKECMDGOALS)))
  BENCH_WORDS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
  ifneq (,$(BENCH_WORDS))
    NAME := $(BENCH_WORDS)
    .PHONY: $(BENCH_WORDS)
    $(eval $(BENCH_WORDS): ; @:)
  endif
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help up install test soak lint bench reference lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

up: $(VENV)/.runtime-installed ## Install what running needs, and serve on http://127.0.0.1:8420 (ARGS='--port 9000' …)
	@exec $(BIN)/crossdock up $(ARGS)

install: $(VENV)/.dev-installed ## Install what developing needs, into .venv

test: $(VENV)/.dev-installed ## Every suite at a small budget (ARGS='tests/unit -k pagination' …)
	@$(BIN)/python -m tools.engines
	@$(BIN)/pytest -m 'not soak' $(ARGS)

soak: $(VENV)/.dev-installed ## The long budgets of the same suites
	@$(BIN)/python -m tools.engines
	@$(BIN)/pytest -m soak --timeout=7200 $(ARGS)

lint: $(VENV)/.dev-installed ## ruff, mypy --strict, import contracts
	@status=0; \
	$(BIN)/ruff check || status=1; \
	$(BIN)/ruff format --check || status=1; \
	$(BIN)/mypy src tests bench tools || status=1; \
	$(BIN)/lint-imports || status=1; \
	exit $$status

bench: $(VENV)/.dev-installed ## The benchmarks, as ratios (make bench devices, ARGS='--json FILE' …)
	@$(BIN)/python -m bench $(NAME) $(ARGS)

reference: $(VENV)/.dev-installed ## Write docs/reference/ anew from the code
	@$(BIN)/python -m tools.generate_reference

lock: $(LOCKING)/.installed ## Pin the dependencies of pyproject.toml anew (UPGRADE=1: to their newest versions)
	@$(LOCKING)/bin/python tools/lock.py $(if $(UPGRADE),--upgrade)

clean: ## Remove what was installed and cached; stored data stays
	@rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- installing: a stamp each, so that the second run is instant -------------------------------------

$(VENV)/bin/python:
	@for python in $(PYTHON) python3 python3.11 python3.12 python3.13; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        "$$python" -m venv $(VENV) && exit 0; \
	        rm -rf $(VENV); \
	        echo "$$python cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; \
	        exit 1; \
	    fi; \
	done; \
	echo "Crossdock needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1

# The build backend is locked too, and used without isolation: pip would fetch an unpinned one.
$(VENV)/.runtime-installed: requirements/build.txt requirements/runtime.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing Crossdock into $(VENV) …"
	@$(PIP) install --require-hashes -r requirements/build.txt -r requirements/runtime.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt $(VENV)/.runtime-installed
	@echo "Installing what tests need …"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

$(LOCKING)/.installed: requirements/lock.txt | $(VENV)/bin/python
	@$(BIN)/python -m venv $(LOCKING)
	@$(LOCKING)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r requirements/lock.txt
	@touch $@
