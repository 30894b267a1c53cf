# What newcomers and CI run. Each target makes the virtual environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRA_PYTEST ?=

.PHONY: help kill-test demo cluster-demo docs reproduce pages outputs picture release-check ablation fresh other-methods bench bench-active bench-studio bench-confidence bench-million bench-classify bench-disk test lint types \
  test-oldest clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

# The version check comes first, so that an old Python says so instead of failing inside pip.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "lmssc needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

# The demo needs little, and starts sooner for it.
$(VENV)/.ready-demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[plot,progress]'
	@touch $@

$(VENV)/.ready-all: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready-all
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready-all
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

demo: $(VENV)/.ready-demo  ## label 1,797 digits from 5 % labels and draw the figures
	$(BIN)/lmssc demo

cluster-demo: $(VENV)/.ready-all  ## fit 2,000,000 samples on four Dask workers of 1.5 GB, of which one cannot hold them
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python examples/cluster/demo.py

docs: $(VENV)/.ready-docs  ## the documentation, with every example run, into docs/_build/html; warnings are errors
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -n -q -d docs/_build/doctrees docs docs/_build/html
	@echo "Written: docs/_build/html/index.html"

reproduce: $(VENV)/.ready-all  ## the paper's tables and figures again, into results/reproduction (hours; resumes if stopped)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/lmssc reproduce --jobs 2 --out results/reproduction

pages: $(VENV)/.ready-all  ## rewrite the tables of README.md and docs from the CSV files under results
	$(BIN)/python docs/fill.py

outputs: $(VENV)/.ready-all  ## rewrite the console output in README.md and docs by running the commands (three minutes)
	$(BIN)/python docs/outputs.py

picture: $(VENV)/.ready-all  ## draw the picture of README.md (a minute)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/readme_picture.py

release-check: $(BIN)/python  ## build sdist and wheel, check them, run the demo from each in a new environment (five minutes)
	$(BIN)/python tools/release_check.py

ablation: $(VENV)/.ready-all  ## what each part of LMSSC is worth, into results/accuracy (an hour; resumes if stopped)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=docs $(BIN)/python benchmarks/ablation.py

fresh: $(VENV)/.ready-all  ## LMSSC and other methods on 24 more data sets, into results/accuracy (half an hour; resumes if stopped)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/fresh.py

other-methods: $(VENV)/.ready-all  ## all other methods on all development sets, into results/accuracy/peers.csv (an hour; resumes if stopped)
	$(BIN)/python -m pip install --quiet --editable '.[peers]'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/other_methods.py

bench-active: $(VENV)/.ready-all  ## labels that most_informative saves over random ones, into results/active (10 minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/active.py

bench-studio: $(VENV)/.ready-all  ## lmssc label from zero labels against random labels, into results/studio (an hour)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/studio.py

bench-confidence: $(VENV)/.ready-all  ## calibration on hard cases, into results/confidence (five minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/confidence.py

bench: $(VENV)/.ready-all  ## time and memory against other libraries on one core, into results/speed (20 minutes)
	$(BIN)/python -m pip install --quiet --editable '.[all]' quadprog
	$(BIN)/python -m pip install --quiet faiss-cpu || echo "faiss does not install here and is left out"
	$(BIN)/python -m pip install --quiet scikit-network || echo "scikit-network does not install here and is left out"
	$(BIN)/python -m pip install --quiet graphlearning annoy || echo "graphlearning does not install here and is left out"
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed_shapes.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed_small.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py

bench-million: $(VENV)/.ready-all  ## growth to a million samples on two cores, into results/speed (a quarter of an hour)
	$(BIN)/python -m pip install --quiet faiss-cpu || echo "faiss does not install here and is left out"
	OMP_NUM_THREADS=2 $(BIN)/python benchmarks/speed.py --million --sizes 100000 --dtype float32 --cases 'approximate kNN of H'

bench-classify: $(VENV)/.ready-all  ## a million rows of a Parquet file through lmssc classify, into results/speed (half an hour)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/classify_million.py

bench-disk: $(VENV)/.ready-all  ## memory of a fit to views that stay on disk, into results/speed (a minute)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/on_disk.py

# Some shells forbid Python to keep what it compiles; then every process of every test would compile it again.
test test-oldest: export PYTHONDONTWRITEBYTECODE =
test: lint types  ## lint, type checks, all tests; without a network once the environment is made
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(EXTRA_PYTEST)

kill-test: $(VENV)/.ready-dev  ## kill lmssc classify and lmssc label 100 times at random moments; nothing may be lost or left behind (minutes)
	LMSSC_KILLS=100 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/test_killed.py tests/test_studio_killed.py

lint: $(VENV)/.ready-dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev  ## mypy
	$(BIN)/mypy

test-oldest:  ## all tests with the oldest supported dependencies
	test -d $(VENV)-oldest || $(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-oldest/bin/python -m pip install --quiet --editable '.[all]' --group dev \
	  numpy==1.26.* scipy==1.12.* scikit-learn==1.6.* matplotlib==3.8.* 'pandas==2.2.*' 'polars==1.*' 'pyarrow==17.*' \
	  'pooch==1.7.*' 'h5py==3.10.*' 'dask[array]==2025.3.*' 'distributed==2025.3.*'
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n auto --dist worksteal \
	  -o filterwarnings=default $(EXTRA_PYTEST)  # old releases warn about each other

clean:  ## remove the environments and caches
	rm -rf $(VENV) $(VENV)-oldest .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build docs/_build docs/_gallery
