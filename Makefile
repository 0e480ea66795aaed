# The two commands of the README: `make run` and `make test`. Each makes its own environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := all,docs,dev
CONSTRAINTS := constraints.txt
STAMP := $(VENV)/.installed
# Nothing that runs here may reach for a hub or send statistics.
export HF_HUB_OFFLINE ?= 1
export HF_DATASETS_OFFLINE ?= 1
export HF_EVALUATE_OFFLINE ?= 1
export HF_HUB_DISABLE_TELEMETRY ?= 1
export HF_UPDATE_DOWNLOAD_COUNTS ?= 0
export GRADIO_ANALYTICS_ENABLED ?= False
export NO_MKDOCS_2_WARNING ?= 1

# Compiled code is kept: else each process that a test starts compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv run space test coverage test-kernels test-slow check docs format clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(STAMP) ## make .venv with everything that run and test need

# torch goes first, pinned: where the index offers a CPU build it is taken, and later installs keep it.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' $(CONSTRAINTS))"
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable ".[$(EXTRAS)]"
	touch $(STAMP)

run: venv ## judge known edits, edits without weights, then five networks and all baselines on JSB Chorales; writes results/
	$(BIN)/music-evals preserve --dataset known_edits --config small --out results/known_edits
	$(BIN)/music-evals benchmark musecpbench --pieces 4 --seconds 20 --out results/musecpbench \
		--systems transposition,time_stretch,reorchestration,noise_vocoder,hpss_remix,equaliser,effects
	$(BIN)/music-evals inpainting --dataset jsb_chorales --config musib --split test \
		--model models/anticipation_rnn --model models/inpaintnet --model models/sketchnet --model models/vli \
		--model models/infill_transformer --model models/infill_transformer:sample \
		--baselines all --seeds 5 --out results/jsb

# a folder below spaces/, or a metric's: make space NAME=metrics/note_f1
space: venv ## serve a Space on this machine: make space NAME=preservation
	test -n "$(NAME)" || { echo "say which: make space NAME=preservation" >&2; exit 2; }
	$(BIN)/python $(if $(findstring /,$(NAME)),$(NAME),spaces/$(NAME))/app.py

# tests in one stretch for each process, so that what a module shares is made once; who has none left takes from the other
PARALLEL := -n 2 --dist worksteal

test: venv ## the fast tests
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

coverage: venv ## the fast tests, measured: lines and branches of the package that ran, in results/coverage/html
	mkdir -p results/coverage && $(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not slow" $(PARALLEL)
	$(BIN)/coverage combine --quiet && $(BIN)/coverage html --quiet
	@echo "lines and branches that ran: $$($(BIN)/coverage report --format=total) %; results/coverage/html/index.html"

test-kernels: venv ## the extraction tests with other kernels of the linear algebra than this processor's
	OPENBLAS_CORETYPE=Haswell $(BIN)/python -m pytest -q tests/audio/test_extraction.py tests/audio/test_chroma.py tests/audio/test_structure.py

test-slow: venv ## the tests that take more than about a second each: data sets, browsers, simulations, golden numbers
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile

check: venv ## lint, format, types, spelling, import contracts, size and names (tools/shape.py)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxlint --deny-warnings src/music_evals docs/static
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m pytest -q tests/conformance/test_imports.py
	$(BIN)/python tools/shape.py

docs: venv ## build the documentation into site/; a broken link is an error
	$(BIN)/python -m mkdocs build --strict --quiet

format: venv ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment and what the tools left
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis results site
