# make demo   install into .venv, compile and run an example
# make test   lint, types, pytest, lit
# Everything else is for people who work on uopc: see docs/contributing.md.

PYTHON ?= python3
VENV ?= .venv
CONFORMANCE ?= ../shared/conformance
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
FOLDERS := dialects passes lowering runtime frontend interpreters tools benchmarks tests

.PHONY: demo test lint types pytest lit conformance format docs pictures bench clean

demo: $(INSTALLED)
	$(BIN)/uopc-run examples/softmax.mlir --show all --check --quiet

test: lint types pytest lit

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/basedpyright

pytest: $(INSTALLED)
	$(BIN)/python -m pytest -n auto

lit: $(INSTALLED)
	$(BIN)/lit -q --order=lexical tests/filecheck

# StableHLO's own test programs, where a folder of them is: make conformance CONFORMANCE=FOLDER;
# ONNX's node tests, where onnx is installed.
conformance: $(INSTALLED)
	$(BIN)/python tests/conformance/run_conformance.py $(CONFORMANCE)
	$(BIN)/python tests/conformance/run_conformance.py $(CONFORMANCE) --target c
	$(BIN)/python tests/conformance/run_onnx.py
	$(BIN)/python tests/conformance/run_onnx.py --target c

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED)
	$(BIN)/python docs/generate_reference.py
	$(BIN)/python docs/generate_supported.py
	$(BIN)/python docs/check_examples.py --update

# Beside numpy, and torch and jax where they are installed: make bench BENCH=--quick.
bench: $(INSTALLED)
	$(BIN)/python benchmarks/beside.py $(BENCH)

pictures: $(INSTALLED)
	$(BIN)/python docs/pictures/draw.py

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "uopc needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
