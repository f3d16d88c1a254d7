# Every target makes its own environment in .venv; nothing but Python 3.11 or newer is needed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
ARGS ?=

.PHONY: help venv demo test lint format docs docs-site docs-serve bench wheel clean

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null || grep '## ' Makefile

$(STAMP): pyproject.toml constraints.txt scripts/bootstrap
	@scripts/bootstrap $(VENV)
	@touch $@

venv: $(STAMP)  ## Create .venv from constraints.txt; done once per change of it

demo: $(STAMP)  ## Check an example answer against its sources
	@$(BIN)/surefoot check examples/policy.json

test: $(STAMP)  ## Run the tests; ARGS="-k name" selects
	@$(BIN)/python -m pytest $(ARGS)

lint: $(STAMP)  ## Lint, check the formatting and the types
	@scripts/lint $(VENV)

format: $(STAMP)  ## Rewrite the code in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(STAMP)  ## Update the outputs shown in the documents to what is printed now
	@$(BIN)/python scripts/update-docs

docs-site: $(STAMP)  ## Build the documentation site in build/site; broken links are errors
	@scripts/docs-site $(VENV)

docs-serve: $(STAMP)  ## Serve the documentation on http://localhost:8000
	@scripts/docs-site $(VENV) serve

bench: $(STAMP)  ## Measure: WHAT=verify, with DATA=DIR where data are needed; lists all without WHAT
	@scripts/bench $(VENV) $(WHAT) $(if $(DATA),--data "$(DATA)") $(ARGS)

wheel: $(STAMP)  ## Build the wheel into dist/ and try it in a bare environment
	@scripts/test-wheel $(VENV)

clean:  ## Remove everything that can be made again
	@rm -rf $(VENV) dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
