# make demo   see on real data what the right temperature does (under a minute after set-up)
# make test   the fast tests (make test-all: everything); the other targets are for people who work on tstar
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One process per core and one thread per process: small networks gain nothing from more threads.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all test-portable test-floors lint types docs wheel coverage mutants release-check clean

demo: $(VENV)/.demo
	$(BIN)/tstar demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

# The fast tests first: what is broken shows early.
test-all: test
	$(BIN)/python -m pytest -n 2 -m slow

# The fast tests under other instruction sets, threads, orders, locales, time zones and homes.
test-portable: $(VENV)/.dev
	$(BIN)/python benchmarks/portable.py

# The fast tests with the lowest versions that pyproject.toml promises, and with the newest Python at hand.
test-floors:
	bash .ci/floors lowest
	bash .ci/floors newest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --outdir dist

# Lines and branches that the fast tests reach, and the share of planted faults that they notice.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 -m "not slow" --cov=tstar --cov-branch --cov-report=term:skip-covered

mutants: $(VENV)/.dev
	$(BIN)/python benchmarks/mutants.py

# What a release must pass: sdist and wheel, each in an empty environment; links; the conda recipe; the documentation.
release-check: docs
	bash .ci/release

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e ".[lab]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e . --group dev
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
