# Habits. `make demo` and `make test` set up what they need in .venv and work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=  # compile a module at its first use, once, also where an image says otherwise

.PHONY: help setup demo test quick check lint types sql-format unit compat e2e format screenshots bench clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: [^#]*##/\t/' | expand -t 16

setup: $(VENV)/.ready  ## a virtual environment with everything the tests need

# uv takes seconds where pip takes a minute; pip is for machines whose package index is set for pip alone.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]' || \
		$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	@touch $@

demo: setup      ## a sample release, built, and something worth looking at
	$(BIN)/warehouse demo

test: setup check  ## lint, types, SQL format and all tests

quick: setup     ## lint, types and the tests of what changed since the last commit
	$(BIN)/python -m tests.quick

check: setup
	$(MAKE) --jobs 2 --output-sync lint types sql-format
	$(MAKE) unit

lint: setup      ## ruff: lint and format; codespell: spelling; import-linter: imports go one way
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell -D -
	$(BIN)/lint-imports --no-cache

types: setup     ## mypy, strict
	$(BIN)/mypy

sql-format: setup  ## sqlfluff: one style for all SQL
	$(BIN)/sqlfluff lint --processes 2 models sql

unit: setup      ## the tests alone
	$(BIN)/pytest -n 2 --dist worksteal

compat: setup    ## the published file in DuckDB 1.4 and 1.5, each in an environment of its own
	WAREHOUSE_MUST_RUN=1 $(BIN)/pytest tests/reader/test_versions.py

e2e: setup       ## Superset, installed from its lock: the dashboard over a sample and the published part, looked at with Chromium
	WAREHOUSE_MUST_RUN=1 $(BIN)/pytest --timeout 14400 tests/e2e

format: setup    ## put Python and SQL into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/sqlfluff fix --processes 2 models sql

screenshots: setup  ## the pictures of the docs, of the sample (needs Chromium)
	$(BIN)/warehouse demo
	$(BIN)/python -m tests.screenshots build/warehouse docs/images

bench: setup     ## ingest against a bare DuckDB load
	$(BIN)/python -m bench.ingest

clean:           ## everything that can be made again
	rm -rf build dist data/sample .mypy_cache .ruff_cache .pytest_cache
