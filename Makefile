# Everything a newcomer needs: `make demo` and `make test` set up a virtual environment themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the command needs, and what developing needs on top of it.
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
# One BLAS thread in each of the test workers: they share the cores already. A file stays in one
# worker, so that there is one Spark session; the longest come first (tests/conftest.py). Compiled
# files are kept whatever the environment says: each process of a test would compile them anew.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile \
	--no-loadscope-reorder -q

.PHONY: help demo docs report refresh-docs test test-all realdata validity accuracy pictures check
.PHONY: format bench libraries clean web web-test
help:
	@echo "make demo      set up, estimate from the shipped example, reproduce the paper on ml-1m"
	@echo "make test      the fast tests          make test-all   with the slow ones"
	@echo "make check     linting, types, layers  make validity   statistical promises, by simulation"
	@echo "make accuracy  the prior on data sets left out, and every estimator beside MLE"
	@echo "make bench     speed and memory, as ratios to reference implementations"
	@echo "make docs      the documentation site, into out/docs; make refresh-docs redoes its output"
	@echo "make report    the technical report, into out/report.pdf"
	@echo "make web       the page with the calculators, into out/web; PYODIDE=folder: without a CDN"
	@echo "make web-test  that page in a browser, and the tests inside Pyodide: half an hour"
	@echo "make libraries adapters with each real library"
	@echo "make pictures  the pictures of the documentation, made anew"
	@echo "make realdata  tests on the data sets, which must be here"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e '.[frames,data,report]'
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/unsample estimate examples/ranks.csv --items 3706 --sampled 99 \
		--candidates unseen -m Recall@10 -m NDCG@10 -m Recall@50 --method naive --method auto
	$(BIN)/unsample reproduce --dataset ml-1m --out out/demo

test: $(DEV)
	$(PYTEST)

test-all: $(DEV)
	$(PYTEST) -m "not validity and not realdata and not web"

# Needs the public data sets: set UNSAMPLE_DATA, or fetch them (python -m unsample.lab fetch).
realdata: $(DEV)
	$(PYTEST) -m realdata

validity: $(DEV)
	$(PYTEST) -m validity

# The estimators beside each other, on the bundled ranks and on ranks that had no part in choosing
# anything: some minutes on two cores.
accuracy: $(DEV)
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/accuracy.py --ranks other --out out/accuracy-other
	$(BIN)/python benchmarks/calibration.py

$(VENV)/.docs: $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

# Every warning is an error: a dead link, a missing docstring, a name that resolves to nothing.
docs: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx --quiet -W --keep-going -b html docs out/docs
	@echo "open out/docs/index.html"

# The technical report as a page of its own, printed by the browser: nothing but Chromium is needed.
CHROMIUM ?= chromium
report: docs
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --no-pdf-header-footer \
		--print-to-pdf=out/report.pdf "file://$(CURDIR)/out/docs/report/report.html"
	@echo "open out/report.pdf"

# Python itself comes from a public CDN, or from a folder (PYODIDE=...) that becomes a part of the site.
web: $(DEV)
	$(BIN)/python tools/make_web.py --out out/web $(if $(PYODIDE),--pyodide $(PYODIDE))

# 106 MB are fetched once, and kept in ~/.cache/unsample-tests; Node.js and Chromium must be there.
web-test: $(DEV)
	$(BIN)/python tools/get_pyodide.py
	$(BIN)/python -m pytest -q -m web tests/test_web.py
	$(BIN)/python tools/try_pyodide.py

# Run the commands and the code of the pages and of the tutorial, and write down what they print.
refresh-docs: $(DEV)
	PYTHONPATH=. $(BIN)/python tools/run_notebook.py
	PYTHONPATH=. $(BIN)/python tools/refresh_docs.py

# The adapters' tests with every real library, each in an environment of its own: gigabytes.
libraries: $(READY)
	$(BIN)/python tools/try_adapters.py

pictures: $(DEV)
	$(BIN)/python tools/pictures.py

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.bench: $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/frames.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
