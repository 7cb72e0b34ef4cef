# Servo: `make help` explains.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BUF := .venv/bin/buf
BUILD := cargo build --workspace --bins
# Runs a tool of .venv in the package's folder.
IN_PYTHON := cd libs/python && export PATH="$(CURDIR)/.venv/bin:$$PATH"
PYTHON_LINT = $(IN_PYTHON) && ruff check --quiet . && ruff format --quiet --check . && mypy --no-error-summary
# Two processes: the tests of the mesh run in one, the others in both.
PYTEST := pytest --quiet --numprocesses=2 --dist=loadgroup
WITH_POSTGRES := target/debug/with-postgres
# The full counts instead of the sample that `make test` takes.
LONG := cargo build --quiet -p servo-local --bins && SERVO_FULL=1
CASES ?= 100000
SEEDS ?= 10000

.PHONY: help demo dev test test-rust test-python lint fmt proto baseline python python-lowest wheel sim chaos audit compare bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: ## start the whole mesh on a private Postgres, run the example project on it, stop it again
	@scripts/bootstrap run
	@scripts/bootstrap python
	@$(BUILD)
	@SERVO_STANDALONE="$(CURDIR)/target/debug/servo-standalone" .venv/bin/servo demo

dev: ## the mesh alone, until Ctrl-C; `servo dev` in a project also deploys it and works
	@scripts/bootstrap run
	@$(BUILD)
	@target/debug/servo-standalone dev

# A property test tries 1 % of the cases that `make sim` tries.
test-rust: export PROPTEST_CASES ?= 1000

test: ## all tests, with a sample of the long ones; prints how long the Rust and the Python part took
	@scripts/bootstrap test
	@scripts/stage rust $(MAKE) --no-print-directory test-rust
	@scripts/stage python $(MAKE) --no-print-directory test-python

test-rust:
	@$(BUILD)
	@$(WITH_POSTGRES) --mesh cargo nextest run --workspace --no-fail-fast

test-python:
	@$(PYTHON_LINT)
	@$(IN_PYTHON) && $(PYTEST) --cov --cov-report=term

lint: ## formatting, clippy, ruff, mypy, proto rules, breaking changes and stale stubs, licences, unused dependencies
	@scripts/bootstrap lint
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(BUF) lint
	$(BUF) format --diff --exit-code --exclude-path proto/google
	$(BUF) breaking --against proto/baseline.binpb
	$(BUF) breaking --config buf.mesh.yaml --against proto/baseline_mesh.binpb
	cargo test --quiet --workspace --test snapshot
	cargo deny --log-level error check licenses bans sources
	cargo machete --with-metadata
	$(PYTHON_LINT)
	$(IN_PYTHON) && pytest --quiet --no-header tests/test_stubs.py

fmt: ## format Rust, Python and proto files
	@scripts/bootstrap lint
	cargo fmt --all
	$(BUF) format --write --exclude-path proto/google
	$(IN_PYTHON) && ruff format --quiet .

proto: ## generate the Python stubs from proto/
	@scripts/bootstrap python
	@scripts/python-stubs libs/python/src

python: ## lint and test the Python package alone, without the tests that start the mesh
	@scripts/bootstrap python
	$(PYTHON_LINT)
	$(IN_PYTHON) && $(PYTEST) -m 'not mesh'

# In a venv of its own, because the versions differ from those of .venv.
LOWEST := $(CURDIR)/target/python-lowest

python-lowest: ## test the Python package with the lowest versions of its dependencies that it allows
	@scripts/bootstrap python
	@test -x $(LOWEST)/bin/pip || python3 -m venv $(LOWEST)
	@$(LOWEST)/bin/pip install --quiet --requirement libs/python/requirements-lowest.txt
	@$(LOWEST)/bin/pip install --quiet --no-build-isolation --no-deps --editable libs/python
	@$(LOWEST)/bin/pip check
	cd libs/python && $(LOWEST)/bin/python -m $(PYTEST) -m 'not mesh'

wheel: ## the Python package with the server in it, as a file in dist/ that pip installs
	@scripts/bootstrap run
	@scripts/bootstrap python
	@cargo build --quiet --release -p servo-standalone
	@scripts/wheel target/release/servo-standalone dist

baseline: ## re-cut the baseline that breaking changes are measured against (in a commit of its own)
	@scripts/bootstrap lint
	$(BUF) build --exclude-source-info --path proto/servo/v1 -o proto/baseline.binpb
	$(BUF) build --exclude-source-info --path proto/servo/mesh -o proto/baseline_mesh.binpb
	SERVO_BLESS=1 cargo test --quiet --workspace --test snapshot

sim: ## property tests, model comparisons, 10,000 simulated worlds, Python against Rust; SEED=n replays one, BUG=n plants a bug
ifneq ($(SEED)$(BUG),)
	@cargo run --quiet --release -p servo-sim -- $(if $(SEED),--seed $(SEED)) $(if $(BUG),--bug $(BUG))
else
	@scripts/bootstrap test
	@$(LONG) PROPTEST_CASES=$(CASES) $(WITH_POSTGRES) cargo nextest run --profile full --release \
		-p servo-model -p servo-store -E 'package(servo-model) or binary(model)'
	@cargo run --quiet --release -p servo-sim -- --seeds $(SEEDS)
	@$(BUILD) --quiet
	@$(IN_PYTHON) && SERVO_FULL=1 pytest --quiet -k planner_agrees
endif

chaos: ## kill -9, SIGSTOP, cut connections, fair shares, large graphs and rotated certificates at full length
	@scripts/bootstrap test
	@cargo build --quiet --release --workspace --bins
	@$(LONG) $(WITH_POSTGRES) cargo nextest run --profile full --release --no-fail-fast \
		-p servo-store -p servo-bus -p servo-scheduler -p servo-mesh -p servo-tests \
		-E 'test(/f09|f11|f16|f18|f22|f23|f24|acknowledged|rotation|chaos/)'
	@$(IN_PYTHON) && SERVO_FULL=1 SERVO_BIN_DIR="$(CURDIR)/target/release" pytest --quiet -k chaos

audit: ## known vulnerabilities of the locked dependencies, from a local advisory database
	@scripts/bootstrap lint
	@scripts/audit

compare: ## speed of the working tree (or HEAD=<commit>) against BASE=<commit>, in turns; exits 1 when a figure is worse
	@test -n "$(BASE)" || { echo 'compare: say what to compare with, as in: make compare BASE=HEAD~1' >&2; exit 2; }
	@scripts/bootstrap run
	@scripts/compare $(BASE) $(HEAD)

bench: ## speed and memory, ending with one line of JSON
	@scripts/bootstrap run
	@cargo build --quiet --release --workspace --bins
	@scripts/bootstrap python
	@set -o pipefail; target/release/bench_append | tee /dev/stderr | target/release/bench_engine | \
		tee /dev/stderr | ($(IN_PYTHON) && python -m tests.bench_worker "$(CURDIR)/target/release")

clean: ## remove what was built and installed here, and the demo's data
	cargo clean --quiet
	rm -rf .servo .venv dist
