# Every target makes its own .venv first, and again when the dependencies change.
# Needed: Python 3.11 or newer with venv and pip, and make. Nothing else.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test test-full check bench docs format clean

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## A worker, and tasks that end in every way, in a temporary database
	@$(BIN)/python tools/demo.py

test: $(READY)  ## All checks and tests, as CI runs them (under 8 minutes on 2 cores)
	@$(BIN)/python tools/run_tests.py

test-full: $(READY)  ## The same, and the slow tests
	@$(BIN)/python tools/run_tests.py --full

check: $(READY)  ## Format, lint, types, layers, generated documents; no tests
	@$(BIN)/python tools/run_tests.py --check-only

bench: $(READY)  ## Measure, and print ratios against hand-written SQL
	@$(BIN)/python -m bench

docs: $(READY)  ## Write the documents that are generated from the code
	@$(BIN)/python tools/gen_docs.py

format: $(READY)  ## Format the code and apply safe fixes
	@$(BIN)/ruff check --fix-only -q . && $(BIN)/ruff format -q .

clean:  ## Remove .venv, caches and build results
	rm -rf .venv .bench .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Holdfast needs Python 3.11 or newer; say which: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing the development dependencies into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
