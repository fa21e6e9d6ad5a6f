# Two commands for users; both need git, make, Python 3.11 or later and its pip, nothing else.
#   make demo   generate a small cluster and its requests, simulate them under two policies
#   make test   everything that is checked before a change lands (what CI runs)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := build/demo
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint halves serving rest live unit browser servers lab-binaries uncompiled smoke hundredth lock clean
.DEFAULT_GOAL := demo

demo: $(VENV)/run.stamp
	$(BIN)/slacktide generate cell --out $(DEMO)/input
	$(BIN)/slacktide simulate $(DEMO)/input/workload.parquet $(DEMO)/input/hosts.parquet --policy priority --end 3600 --out $(DEMO)/priority
	$(BIN)/slacktide simulate $(DEMO)/input/workload.parquet $(DEMO)/input/hosts.parquet --policy qos-driven --end 3600 --out $(DEMO)/qos-driven
	@echo "Rows per request, per class and the manifest are in $(DEMO)/priority and $(DEMO)/qos-driven."

test: lint halves

# The live tests mostly wait for servers, so the rest runs beside them, with less priority; its output comes at its end.
halves: $(VENV)/dev.stamp $(if $(filter true,$(CI)),browser servers)
	@$(MAKE) --no-print-directory --jobs=2 serving rest

serving: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory --jobs=1 --keep-going live smoke hundredth

rest: $(VENV)/dev.stamp
	@mkdir -p build
	@nice -n 19 $(MAKE) --no-print-directory --jobs=1 unit uncompiled >build/rest.log 2>&1; \
		found=$$?; cat build/rest.log; exit $$found

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# tests/report opens pages in Chromium, and is skipped where that is missing; in CI it is installed where apt can.
unit: $(VENV)/dev.stamp $(if $(filter true,$(CI)),browser servers)
	$(if $(filter true,$(CI)),SLACKTIDE_REQUIRE_BROWSER=1 SLACKTIDE_REQUIRE_SERVERS=1) $(BIN)/pytest -q --ignore=tests/kube

browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ apt-get update -q && apt-get install -y -q --no-install-recommends chromium chromium-driver; } >/dev/null

# Network namespaces (iproute2, and root) and a Prometheus, for tests that ask for them.
servers:
	@command -v ip >/dev/null && command -v prometheus >/dev/null || \
		{ apt-get update -q && apt-get install -y -q --no-install-recommends iproute2 prometheus; } >/dev/null

# These start a real control plane, and are skipped where its programs are missing; in CI (CI=true) that is a failure.
live: $(VENV)/dev.stamp $(if $(filter true,$(CI)),servers lab-binaries)
	$(if $(filter true,$(CI)),SLACKTIDE_REQUIRE_LAB=1 SLACKTIDE_REQUIRE_SERVERS=1) $(BIN)/pytest -q tests/kube

# What tests/kube starts: found, or built with Go into the user's cache folder (about 7 minutes, once).
lab-binaries: $(VENV)/run.stamp
	$(BIN)/slacktide lab binaries

# The kernels as plain Python: shows a result that only compilation (overflow, unchecked bounds) brought about.
uncompiled: $(VENV)/dev.stamp
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -m uncompiled

# What users get is the wheel: build it, install it alone, run it outside the checkout.
smoke: $(VENV)/dev.stamp
	bash .ci/smoke $(BIN)/python build/smoke

# A hundredth of the month of a whole cell (docs/benchmarks.md): that long runs stay whole, not how fast they are.
hundredth: $(VENV)/dev.stamp
	$(BIN)/python bench/month.py --fraction 0.01

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "slacktide needs Python 3.11 or later; name one: make PYTHON=python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements-experiments.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) install --require-hashes -r requirements-experiments.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/run.stamp
	$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

# After a change of the dependencies in pyproject.toml (needs uv): exact versions and hashes for every platform.
UV_COMPILE := uv pip compile pyproject.toml requirements-build.in --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate
lock:
	$(UV_COMPILE) --output-file requirements.lock
	$(UV_COMPILE) --extra experiments --constraints requirements.lock --output-file requirements-experiments.lock
	$(UV_COMPILE) --extra dev --constraints requirements-experiments.lock --output-file requirements-dev.lock

clean:
	rm -rf $(VENV) build dist
