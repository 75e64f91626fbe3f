# Everything is run from here. Needs Python 3.11 and a package registry; nothing else.

PYTHON ?= python3
BIN := .venv/bin
PEERS := .venv-peers/bin
SETUP_DONE := .venv/.setup-done
PEERS_DONE := .venv-peers/.setup-done

.PHONY: setup demo test lint bench bench-peers bench-faults bench-differences bench-check bench-labels bench-data bench-compare bench-harm bench-containment new-check fuzz bench-kills clean

setup: $(SETUP_DONE)

# torch goes first and alone: resolved together with the rest, pip may choose another torch or another numpy.
$(SETUP_DONE): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

# The broken script must be found out (exit code 1), the healthy one must pass (exit code 0), the port must be told apart from its
# PyTorch original (exit code 1).
demo: setup
	@echo '$$ trueline diagnose examples/digits_softmax_loss.py'
	@$(BIN)/trueline diagnose examples/digits_softmax_loss.py; test $$? -eq 1
	@echo
	@echo '$$ trueline diagnose examples/digits_mlp.py'
	@$(BIN)/trueline diagnose examples/digits_mlp.py
	@echo
	@echo '$$ trueline diagnose examples/port/mixer_mindspore.py --reference examples/port/mixer_pytorch.py'
	@$(BIN)/trueline diagnose examples/port/mixer_mindspore.py --reference examples/port/mixer_pytorch.py; test $$? -eq 1

# One thread per process: the tests run in as many processes as there are cores.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python benchmarks/overhead.py

# msprobe brings its own dependencies, so it gets an environment of its own; the rest is measured in ours.
bench-peers: setup $(PEERS_DONE)
	$(BIN)/python benchmarks/overhead.py --peers

# Every script of the fault benchmark: recall, cause, place, false alarms; options with FAULTS='--only tr.01 --jobs 1'.
bench-faults: setup
	$(BIN)/python benchmarks/faults/run.py $(FAULTS)

# Every pair of the difference benchmark: phase, module, cause, faithful pairs; options with DIFFERENCES='--only cnn/port --jobs 1'.
bench-differences: setup
	$(BIN)/python benchmarks/differences/run.py $(DIFFERENCES)

# Label errors on digits: our ranking from one recorded run beside cleanlab's of five, and what recording the margins costs.
bench-labels: setup
	$(BIN)/python benchmarks/label_errors.py

bench-check: setup
	$(BIN)/python benchmarks/check_speed.py

# Rows per second and peak memory of `trueline data` on files of two sizes; options with DATA='--gb 2'.
bench-data: setup
	$(BIN)/python benchmarks/data_streaming.py $(DATA)

# Speed and peak memory of `trueline compare` beside one pass of numpy and msprobe's compare; options with COMPARE='--gb 1'.
bench-compare: setup $(PEERS_DONE)
	$(BIN)/python benchmarks/compare_folders.py $(COMPARE)

# A training that writes in 41 ways, diagnosed and killed: is every file as plain python leaves it? Options with HARM='--kills 20'.
bench-harm: setup
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/harm/run.py $(HARM)

# Every watch fails on purpose, one at a time, in six scripts: what does it cost? Options with CONTAINMENT='--only ModuleWatch'.
bench-containment: setup
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/containment/run.py $(CONTAINMENT)

# The skeleton of a check, with its test, cases and page, whose tests pass: make new-check ID=tr.09 NAME=wrong_thing
new-check: setup
	$(BIN)/python docs/new_check.py $(ID) $(NAME)

# Damaged files of every kind, for an hour: how they end for each reader, peak memory, longest input. Options with
# FUZZ='--minutes 10 --inputs 100000 --seed 7 --only torch journal'.
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz/campaign.py $(FUZZ)

# Short trainings killed at random moments: does every record open to the last complete step? Options with KILLS='--kills 40'.
bench-kills: setup
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kills/run.py $(KILLS)

$(PEERS_DONE): Makefile
	$(PYTHON) -m venv .venv-peers
	$(PEERS)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/python -m pip install --quiet --disable-pip-version-check mindstudio-probe scikit-learn
	touch $@

clean:
	rm -rf .venv .venv-peers .trueline .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
