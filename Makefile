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
.PHONY: help demo test test-js test-browser view nightly check lint types bench clean

help:
	@echo "make demo     run the first notebook on the default device and leave it as an HTML page in demo/"
	@echo "make test     run the tests"
	@echo "make test-browser  run the view in a real JupyterLab in headless Chromium (needs Chromium)"
	@echo "make test-js  type-check and test the view's TypeScript (needs node and npm)"
	@echo "make view     build tilelang_nb/notebook/static/widget.js from js/ (needs node and npm)"
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

$(VENV)/.browser: pyproject.toml | $(VENV)/.dev
	@echo "installing JupyterLab and Playwright into $(VENV) (a minute the first time)"
	$(PIP) install --editable '.[browser]'
	@touch $@ $(VENV)/.dev $(VENV)/.notebook

# npm writes the inner lock file last.
js/node_modules/.package-lock.json: js/package-lock.json
	cd js && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

demo: $(VENV)/.notebook
	@mkdir -p demo
	$(BIN)/python -m nbconvert --log-level=ERROR --to html --execute --ExecutePreprocessor.extra_arguments=--log-level=ERROR --ExecutePreprocessor.timeout=600 --output-dir demo $(NOTEBOOK)
	@echo "The notebook ran. Its page: $(CURDIR)/$(PAGE)"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q --ignore=tests/browser

# Without the variable the tests are skipped where something that they need is not installed.
test-browser: $(VENV)/.browser js/node_modules/.package-lock.json
	TILELANG_NB_BROWSER=1 $(BIN)/python -m pytest -q tests/browser tests/structure/test_view_build.py

test-js: js/node_modules/.package-lock.json
	cd js && npm run --silent check && npm test --silent

view: js/node_modules/.package-lock.json
	cd js && npm run --silent build

nightly: $(VENV)/.dev
	TILELANG_NB_TESTS=nightly $(BIN)/python -m pytest -n 2 -q tests/properties

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

check: lint types test-js test-browser test

bench: $(VENV)/.dev
	$(BIN)/python tests/benchmarks/run.py

clean:
	rm -rf $(VENV) js/node_modules demo build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
