# Two commands on a fresh clone: `make demo` runs the main job, `make test` passes all tests.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.set-up

FLINK := .venv-flink/.set-up

.PHONY: demo test bounds lint format setup docs flink benchmarks lock claims clean

demo: $(SETUP)
	$(BIN)/joinsim demo

# Three processes, of two cores: a fifth of the time, a test waits for processes that it has started.
# Python stores what it compiles, whatever the environment says: or each of those compiles it anew.
test: lint
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --numprocesses 3 --dist loadgroup

# Every index that a kernel uses is checked, which takes machine code of its own: some ten minutes.
bounds: export NUMBA_BOUNDSCHECK = 1
bounds: export JOINSIM_CACHE = $(CURDIR)/build/bounds
bounds: $(SETUP)
	$(BIN)/pytest --numprocesses 2 --dist loadgroup tests/joins tests/properties tests/actors

lint: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Containerfile

format: $(SETUP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: $(SETUP)

$(SETUP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "joinsim needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	-$(BIN)/python -m spark_bridge.class_archive  # Spark starts without it too, but slower
	touch $@

# PyFlink wants older libraries than joinsim: an environment of its own, for `compare --engines flink`.
flink: $(FLINK)

$(FLINK): requirements-flink.lock
	$(PYTHON) -m venv .venv-flink
	.venv-flink/bin/pip install --quiet --disable-pip-version-check --requirement requirements-flink.lock
	touch $@

# The site, in docs/_build, made anew, as much of it comes from the code; a warning is an error.
docs: $(SETUP)
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html docs docs/_build

benchmarks: $(SETUP)
	$(BIN)/python -m benchmarks

lock: $(SETUP)
	$(BIN)/pip-compile --quiet --all-extras --allow-unsafe --strip-extras --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements.lock pyproject.toml

# Which claims hold at smoke scale: the record that the tests compare with, written anew.
claims: $(SETUP)
	$(BIN)/python -m tests.scenarios.study.smoke_claims

clean:
	rm -rf .venv .venv-flink runs prepared docs/_build
