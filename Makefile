# Every target sets up what it needs: a virtual environment in .venv, once, with the pins of constraints.txt.
# PYTHON is the interpreter that makes it (3.11 or newer, with the venv module): make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
COVERED := tasks evidence learning policy trial statistics

.PHONY: help demo test lint types docs
.DEFAULT_GOAL := help

help:
	@echo 'make demo   run trials/notes-smollm2.toml: a real small model, on the processor'
	@echo 'make test   the tests, with branch coverage of: $(COVERED)'
	@echo 'make lint   style and formatting'
	@echo 'make types  static types'
	@echo 'make docs   rewrite the generated pages'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("loratrial needs Python 3.11 or newer: set PYTHON")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/loratrial run trials/notes-smollm2.toml

test: $(READY)
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 \
		$(COVERED:%=--cov=loratrial.%) --cov-branch --cov-report=term:skip-covered --cov-fail-under=90

lint: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests

types: $(READY)
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m loratrial.spec_reference
