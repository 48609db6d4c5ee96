# `make demo` and `make test` set up all they need; nothing else has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed

.PHONY: setup demo test lint clean
setup: $(SETUP)

# torch goes first and pinned: a later requirement then finds it installed and does not fetch another build.
$(SETUP): setup.cfg constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

test: setup
	$(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/lint-imports

demo: setup
	$(BIN)/pdc-sfm demo --output outputs/demo

clean:
	rm -rf $(VENV) outputs/demo
