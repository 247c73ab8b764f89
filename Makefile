# The commands of the README. Each makes what it needs in .venv; only Python 3.10 or newer and make have to be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NOTEBOOK := notebooks/01_first_kernels.ipynb
PAGE := demo/01_first_kernels.html

# The kernel and the tools of this environment, whatever the user's home folder holds.
export JUPYTER_PREFER_ENV_PATH := 1
export PYTHONNOUSERSITE := 1

.DEFAULT_GOAL := help
.PHONY: help demo test nightly check lint types bench clean

help:
	@echo "make demo     run the first notebook on the default device and leave it as an HTML page in demo/"
	@echo "make test     run the tests"
	@echo "make nightly  run the property tests with thousands of random programs"
	@echo "make check    what CI runs: lint, format, types, tests"
	@echo "make bench    measure the budgets and print ratios"
	@echo "make clean    remove the environment and everything built"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.notebook: pyproject.toml | $(BIN)/python
	@echo "installing the package and what runs a notebook into $(VENV) (one or two minutes the first time)"
	$(PIP) install --editable '.[notebook]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "installing the package and the development tools into $(VENV) (one or two minutes the first time)"
	$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.notebook

demo: $(VENV)/.notebook
	@mkdir -p demo
	$(BIN)/python -m nbconvert --log-level=ERROR --to html --execute --ExecutePreprocessor.extra_arguments=--log-level=ERROR --ExecutePreprocessor.timeout=600 --output-dir demo $(NOTEBOOK)
	@echo "The notebook ran. Its page: $(CURDIR)/$(PAGE)"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

nightly: $(VENV)/.dev
	TILELANG_NB_TESTS=nightly $(BIN)/python -m pytest -n 2 -q tests/properties

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

check: lint types test

bench: $(VENV)/.dev
	$(BIN)/python tests/benchmarks/run.py

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
