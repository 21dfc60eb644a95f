# make demo   see on real data what the right temperature does (under a minute after set-up)
# make test   the fast tests (make test-all: everything); the other targets are for people who work on tstar
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One process a core and one thread a process: small networks gain nothing from more threads.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all lint types docs wheel clean

demo: $(VENV)/.demo
	$(BIN)/tstar demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel --outdir dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e ".[demo]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q -e ".[dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
