# Everything runs from .venv, which these rules make. The only needs are python3 (3.11 or later) and make.
PYTHON ?= python3
BIN := .venv/bin
# tests and benchmarks start many processes, and each would compile the package anew
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo install dev test test-slow coverage mutate check format bench reproduce docs dist lock clean
.DEFAULT_GOAL := demo

demo: .venv/.base
	$(BIN)/sourdine demo

install: .venv/.base

dev: .venv/.dev

test: .venv/.dev
	$(BIN)/pytest -n 2 -m "not slow" tests src reproduction/src

test-slow: .venv/.hub
	$(BIN)/pytest -n 2 -m "slow or hypothesis" --hypothesis-profile=explore tests src reproduction/src

# Branches too. Core and accounting are held to 95 %: there a line that no test reaches may be a guarantee.
coverage: .venv/.dev
	$(BIN)/pytest -n 2 -m "not slow" --cov --cov-report= tests src reproduction/src
	$(BIN)/coverage report --include='*/core/*,*/accounting/*' --fail-under=95
	$(BIN)/coverage report --skip-covered

# Small faults in core, accounting and the statistics, made in a copy: the tests must see each. Another draw every week.
SAMPLE ?= 150
SEED ?= $(shell date +%G%V)
mutate: .venv/.dev
	nice $(BIN)/python -m tests.mutation --sample $(SAMPLE) --seed $(SEED) $(if $(AGAIN),--again $(AGAIN))

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/codespell src reproduction tests benchmarks distribution docs *.md
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.dev
	$(BIN)/python -m benchmarks

# DATA is a folder with the public data sets; without it, experiments that need them say so.
reproduce: .venv/.dev
	$(BIN)/sourdine reproduce all -o reproduced $(if $(DATA),--data $(DATA))
	$(BIN)/python docs/generate/reproduced.py reproduced

# The notebooks are executed, unless nothing that they depend on has changed since (.docs keeps what they made);
# --strict makes a broken link an error.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html in a browser; for its search too: $(BIN)/python -m http.server -d site"

# Wheel, source distribution and bill of materials of the last commit, built twice, checked, with their digests.
dist: build/.tools
	build/tools/bin/python -m distribution

# requirements.lock, from pyproject.toml and constraints.txt; it asks an index for the digests of all files.
lock: build/.tools
	build/tools/bin/python -m distribution.lock

clean:
	rm -rf .venv .bench .mutate .docs site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps .base, .dev, .hub and .docs make a second run quick: pip runs again only when the requirements change.
.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sourdine needs Python 3.11 or later.")'
	$(PYTHON) -m venv .venv

.venv/.base: pyproject.toml reproduction/pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[studio]' -e ./reproduction
	@touch $@

.venv/.dev: pyproject.toml reproduction/pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[dev]' -e ./reproduction
	@touch .venv/.base $@

.venv/.hub: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[dev,hub]' -e ./reproduction
	@touch .venv/.base .venv/.dev $@

.venv/.docs: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[docs]' -e ./reproduction
	@touch .venv/.base $@

build/.tools: distribution/tools.txt
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@
