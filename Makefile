# `make demo` and `make test` set up a virtual environment themselves; nothing else is needed first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt -e
INSTALL := $(BIN)/python $(PIP)
# What the command needs, and what developing needs on top of it.
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
# An environment without any extra.
CORE := $(VENV)/core
# One BLAS thread in each of the test workers: they share the cores already. A file stays in one
# worker, so that there is one Spark session; the longest come first (tests/conftest.py). Compiled
# files are kept whatever the environment says: each process of a test would compile them anew.
SETTINGS := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
PYTEST := -m pytest -n auto --no-loadscope-reorder -q

.PHONY: help demo test core check prove bench docs web libraries mutants dist format clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[frames,data,report]'
	@touch $@

$(DEV): $(READY)
	$(INSTALL) '.[dev]'
	@touch $@

demo: $(READY)  ## README's first command, and the paper reproduced on ml-1m
	$(BIN)/unsample estimate examples/ease.csv --sampled 99 --protocol unseen --without ml-1m \
		-m Recall@10 --method naive --method mle --method auto
	$(BIN)/unsample reproduce --dataset ml-1m --out out/demo

test: $(DEV)  ## the tests; COVER=1 prints how much of the library they run
	$(SETTINGS) $(BIN)/python $(if $(COVER),-m coverage run) $(PYTEST) --dist loadfile
	$(if $(COVER),$(BIN)/python tools/coverage_report.py)

$(CORE)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python $(PIP) . pytest
	@touch $@

# The adapter imports what it adapts; all other examples of docstrings run.
core: $(CORE)/.ready  ## every reader, README and all docstrings, without any extra
	$(SETTINGS) $(CORE)/bin/python -m pytest -q -o addopts= --noconftest --doctest-modules \
		--doctest-glob=README.md --ignore=src/unsample/adapters/torchmetrics.py \
		tests/core.py README.md src/unsample

check: $(DEV)  ## linting, types, import layers, one thing a line
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_lines.py

prove: $(DEV) $(if $(LONG),$(VENV)/.release)  ## every statistical promise, with its table (out/prove.md); LONG=1 fuzzes as well
	$(SETTINGS) $(BIN)/python $(PYTEST) --dist worksteal -m "validity or slow"
	$(if $(LONG),$(BIN)/python tools/fuzz.py --seconds 600)

bench: $(DEV)  ## speed and memory beside references, with a table (out/bench.md)
	$(BIN)/python benchmarks/run.py

# What the documentation needs, and what is needed before a release.
$(VENV)/.docs $(VENV)/.release: $(VENV)/.%: $(DEV)
	$(INSTALL) '.[$*]'
	@touch $@

# Every warning is an error: a dead link, a missing docstring, a name that resolves to nothing.
docs: $(VENV)/.docs  ## the documentation site (out/docs), after a run of all that it shows
	$(SETTINGS) $(BIN)/python tools/refresh_docs.py --check
	$(SETTINGS) $(BIN)/python tools/corpus_page.py --check
	$(SETTINGS) $(BIN)/python tools/field.py --check
	$(SETTINGS) $(BIN)/python tools/readme_tables.py --check
	$(SETTINGS) $(BIN)/python tools/paper_page.py --check
	$(SETTINGS) $(BIN)/python -m sphinx --quiet -W --keep-going -b html docs out/docs
	@echo "open out/docs/index.html"

# Python itself comes from a public CDN, or from a folder that becomes a part of the site.
web: $(DEV)  ## the page with the calculators (out/web); PYODIDE=folder: without a CDN
	$(BIN)/python tools/make_web.py --out out/web $(if $(PYODIDE),--pyodide $(PYODIDE))

libraries: $(READY)  ## adapters with each real library, in environments of their own: gigabytes
	$(BIN)/python tools/try_adapters.py

mutants: $(VENV)/.release  ## does a test fail when the core is wrong? ten minutes; SIZE=n: of each package
	$(SETTINGS) $(BIN)/python tools/mutants.py $(if $(SIZE),--size $(SIZE))

dist: $(VENV)/.release  ## wheel and sdist (dist), checked and tried in empty environments
	$(BIN)/python tools/check_dist.py

format: $(DEV)  ## fix what the linter can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove all that was made here, the environment included
	rm -rf $(VENV) build dist mutants out .mypy_cache .ruff_cache .pytest_cache .hypothesis
