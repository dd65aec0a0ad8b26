# For a fresh machine: make demo, make test, make docs. They create .venv themselves.
# Needed: Python >= 3.11 with venv, a C compiler, make, git. Another Python: make PYTHON=python3.12 test

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
PY := $(VENV)/bin/python
BUILD_DIR := build/editable
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
# An edited .pyx is compiled at the start of a run, before several workers import it.
COMPILE := $(VENV)/bin/ninja -C $(BUILD_DIR) --quiet

# Meson looks for cython and ninja on the PATH. One thread of linear algebra per test worker.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all fuzz lint docs wheel clean check-kernels

demo: $(VENV)/installed-cli
	@$(COMPILE)
	$(PY) -m leaveout.cli select

# test-all adds what is marked nightly; ARGS goes to pytest: make test ARGS="-k rbf"
test: $(VENV)/installed-test
	@$(COMPILE)
	$(PY) -m pytest -n $(WORKERS) --doctest-modules ./tests --pyargs leaveout $(ARGS)

test-all: ARGS += -m ""
test-all: test

# Properties of the public API on new seeds, until the time is up; a failure prints how to repeat it.
SECONDS ?= 600
fuzz: $(VENV)/installed-test
	@$(COMPILE)
	$(PY) benchmarks/fuzz.py --seconds $(SECONDS)

lint: $(VENV)/installed-lint
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/cython-lint src
	$(VENV)/bin/codespell
	$(PY) -m mypy

# Warnings are errors; the examples run. The pages are then in docs/_build/html.
docs: $(VENV)/installed-docs
	@$(COMPILE)
	rm -rf docs/_build docs/auto_examples docs/generated
	$(PY) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# A wheel for each Python found, in dist; each is installed and used without a compiler.
wheel: $(VENV)/build-tools
	@$(PIP_INSTALL) nox uv
	$(VENV)/bin/nox -s wheel

# Kernels with memory checks compiled in: up to an hour. ARGS=sanitizer runs one of the two checks.
check-kernels: $(VENV)/build-tools
	$(PY) tools/check_kernels.py $(ARGS)

clean:
	rm -rf docs/_build docs/auto_examples docs/generated
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The editable install: edits of Python files need nothing, edits of kernels need ninja,
# edits of the build files below need pip again.
$(VENV)/installed-%: pyproject.toml meson.build meson.options $(VENV)/build-tools
	@echo "Compiling and installing into $(VENV): some minutes the first time"
	@$(PIP_INSTALL) --no-build-isolation --config-settings=build-dir=$(BUILD_DIR) --editable ".[$*]"
	@touch $@

$(VENV)/build-tools: pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
	  { echo "leaveout needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb')); \
	  print(*project['build-system']['requires'], 'ninja', sep='\n')" > $(VENV)/build-tools.txt
	@$(PIP_INSTALL) --requirement $(VENV)/build-tools.txt
	@touch $@
