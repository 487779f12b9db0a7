# Every target installs what it needs into .venv; nothing else on the machine is touched.
.DEFAULT_GOAL := help
SHELL := /bin/bash
UV_VERSION := 0.13.9
UV := .uv/bin/uv
BIN := .venv/bin
export UV_PYTHON_DOWNLOADS := never
export UV_PYTHON ?= python3
STAMP := .venv/.installed
EMULATOR := .bigquery/.installed
WORKERS ?= 2

.PHONY: help setup demo test lint types arch look bench bench-operator chaos secrets-real e2e e2e-smoke e2e-shell images ci clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  make %-15s %s\n", $$1, $$2}'

$(UV):
	@echo "installing uv into .uv"
	@python3 -m venv .uv
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"

$(STAMP): pyproject.toml uv.lock | $(UV)
	@echo "installing Assay and its locked dependencies into .venv"
	@$(UV) sync --locked --all-extras --inexact --quiet
	@touch $@

$(EMULATOR): tests/emulator/uv.lock | $(UV)
	@echo "installing the BigQuery emulator of the tests into .bigquery"
	@UV_PROJECT_ENVIRONMENT=$(CURDIR)/.bigquery $(UV) sync --project tests/emulator --locked --quiet
	@mkdir -p .bigquery/home
	@HOME=$(CURDIR)/.bigquery/home .bigquery/bin/python -c "import duckdb_extensions as e; e.import_extension('spatial')"
	@touch $@

setup: $(STAMP) ## Install into .venv (done by the other targets too)

demo: $(STAMP) ## Explore the flights of New York, 2013, and write .assay/demo/report.html
	@$(BIN)/assay demo

test: $(STAMP) $(EMULATOR) ## Everything that needs no cluster and no browser
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile tests --ignore tests/look --ignore tests/e2e --ignore tests/real

lint: $(STAMP) ## ruff: errors, imports, format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff . 2>&1 | head -40; exit 1; }

types: $(STAMP) ## mypy, strict
	@$(BIN)/mypy

arch: $(STAMP) ## import-linter: who may import whom
	@$(BIN)/lint-imports

look: $(STAMP) ## Screenshots of the report in headless Chromium, checked and kept in out/look
	@$(BIN)/pytest tests/look

bench: $(STAMP) ## Ratios against baselines, both sides in one run, the goal beside each
	@$(UV) sync --locked --all-extras --inexact --quiet --group bench
	@$(BIN)/python -m tests.bench

bench-operator: $(STAMP) ## Runs by the thousand on simulated nodes, beside a bare client (about 10 minutes)
	@bash tests/cluster/e2e.sh --bench

chaos: $(STAMP) ## Kill a run of 20 steps at every point, resume it, compare (about 10 minutes)
	@$(BIN)/python -m tests.chaos

secrets-real: $(STAMP) ## The secrets' contract on Google (SECRET_GCP_PROJECT_ID) and AWS (SECRET_AWS_REGION); CLOUDS=gcp for one
	@$(BIN)/python -m tests.real $(CLOUDS)

e2e: $(STAMP) ## Runs on a real one-node Kubernetes that is built, started and taken down (Linux, root; first 15, then 7 minutes)
	@$(UV) sync --locked --all-extras --inexact --quiet --group cluster
	@bash tests/cluster/e2e.sh

e2e-smoke: $(STAMP) ## Its smoke part: apply, resume, cancel, delete
	@$(UV) sync --locked --all-extras --inexact --quiet --group cluster
	@bash tests/cluster/e2e.sh tests/e2e -m smoke

e2e-shell: $(STAMP) ## A shell with that cluster up
	@$(UV) sync --locked --all-extras --inexact --quiet --group cluster
	@bash tests/cluster/e2e.sh --shell

images: ## Both images, by buildah; archives in ASSAY_CLUSTER_CACHE
	@bash tests/cluster/images.sh "$${ASSAY_CLUSTER_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/assay-cluster}"

ci: lint types arch ## What CI runs
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory look
	@$(MAKE) --no-print-directory e2e-smoke

clean: ## Remove what the targets made, the local runs in .assay included
	rm -rf .venv .uv .bigquery .assay out
