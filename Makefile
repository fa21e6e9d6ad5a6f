# Commands for users; all need git, make, Python 3.11 or later and its pip, nothing else.
#   make demo           generate a small cluster and its requests, simulate them under two policies
#   make test           what needs no server, in minutes: lint, types, layers, tests
#   make thorough       the rest of that: tests that take long, some without compilation, other levels of processors
#   make test-cluster   what starts servers: tests on a real control plane, the wheel, a long run
#   make fuzz           for an hour: objects drawn at random, new ones each time; nothing may fail over them
#   make benchmarks     measure every table of docs/benchmarks.md anew (that page says what this needs)
#   make docs           build the documentation site into build/site, from nothing but this checkout
# CI runs all three (.ci/run).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := build/demo
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# A lock names every package, so nothing is to be resolved (that it does is checked afterwards), and most modules are never
# imported, so that nothing is to be compiled.
LOCKED  := install --no-deps --require-hashes
INSTALL := $(if $(shell command -v uv),uv pip $(LOCKED) --quiet --python $(BIN)/python -r,$(PIP) $(LOCKED) --no-compile -r)

# What is interrupted or terminated leaves nothing running, and ends at once. ("env A=1", not "A=1": else a shell stands
# between make and the leash, which ends before the leash has done its work.)
LEASH  := $(BIN)/python tests/support/leash.py
PYTEST := $(LEASH) $(BIN)/pytest -q
# With this before it, and this behind, it leaves out what is slow.
FOUND  := env PYTHONPATH=tests$(if $(PYTHONPATH),:$(PYTHONPATH))
QUICK  := -p support.quick
CI_HAS  = $(if $(filter true,$(CI)),$(1))

.PHONY: demo docs test thorough slow all-else test-cluster beside lint library here kernels unit compiled levels uncompiled twins browser servers live alone lab-binaries manifests smoke hundredth benchmarks workflows release base image lock clean audit fuzz soak soak-mutants
.DEFAULT_GOAL := demo

# Only what it needs: while the kernels are compiled, for this processor alone, the packages of the scheduler are installed.
demo: $(VENV)/compiler.stamp
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/base.stamp here
	$(BIN)/slacktide generate cell --out $(DEMO)/input
	$(BIN)/slacktide simulate $(DEMO)/input/workload.parquet $(DEMO)/input/hosts.parquet --policy priority --end 3600 --out $(DEMO)/priority
	$(BIN)/slacktide simulate $(DEMO)/input/workload.parquet $(DEMO)/input/hosts.parquet --policy qos-driven --end 3600 --out $(DEMO)/qos-driven
	@echo "Rows per request, per class and the manifest are in $(DEMO)/priority and $(DEMO)/qos-driven."

# Kernels are built on one processor, and tests wait now and then, for processes and for packets. Lint runs beside them,
# with less priority; its output comes at its end, whole where it failed. (The shell is not to end before what it has
# started.)
ASIDE = mkdir -p build; trap : INT TERM HUP; nice -n 19 $(MAKE) --no-print-directory --jobs=1 --keep-going $(1) >build/$@.log 2>&1; \
	found=$$?; if [ $$found = 0 ]; then tail -n 5 build/$@.log; else cat build/$@.log; fi; exit $$found

test: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory --jobs=2 --keep-going unit beside

beside: $(VENV)/dev.stamp
	@$(call ASIDE,lint)

# What `make test` leaves out: tests that take long and are more of what another one asks for, the same with kernels in
# plain Python, as Numba compiles them here, and for older processors.
thorough: $(VENV)/dev.stamp library
	@$(call ASIDE,slow uncompiled compiled levels)

slow: $(VENV)/dev.stamp library $(call CI_HAS,browser servers)
	$(call CI_HAS,$(REQUIRED)) $(PYTEST) --numprocesses=2 --dist=worksteal --ignore=tests/cluster -m slow \
		$(call CI_HAS,--durations=30 --durations-min=10)

# What CI runs after `make test`: what computes beside what waits for servers.
all-else: $(VENV)/dev.stamp library $(call CI_HAS,browser servers lab-binaries)
	@$(MAKE) --no-print-directory --jobs=3 --keep-going live alone thorough

# The live tests mostly wait for servers, so the rest runs beside them, with less priority; its output comes at its end,
# whole where it failed.
test-cluster: $(VENV)/dev.stamp library $(call CI_HAS,servers lab-binaries)
	@$(MAKE) --no-print-directory --jobs=2 --keep-going live alone

alone: $(VENV)/dev.stamp
	@$(call ASIDE,smoke hundredth workflows image)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The library of compiled kernels, as a wheel has it: about a minute, again only after an edit of a kernel. It needs a
# linker (cc, or the package ziglang); without one Numba compiles each kernel where it is first called.
library: $(VENV)/run.stamp
	@$(LEASH) $(BIN)/python -m slacktide.kernels.ahead_of_time $(if $(filter true,$(CI)),,|| echo "Kernels are compiled as they are needed.")

# The same for this processor's level alone.
here: $(VENV)/compiler.stamp
	@env PYTHONPATH=src $(BIN)/python -m slacktide.kernels.ahead_of_time --here || echo "Kernels are compiled as they are needed."

# Without a library kernels are compiled once, not by every worker of its own.
kernels: $(VENV)/run.stamp library
	$(LEASH) $(BIN)/python tests/support/warm.py

# tests/report opens pages in Chromium, and is skipped where that is missing; in CI it is installed where apt can.
REQUIRED := env SLACKTIDE_REQUIRE_BROWSER=1 SLACKTIDE_REQUIRE_SERVERS=1 SLACKTIDE_REQUIRE_LIBRARY=1
unit: $(VENV)/dev.stamp kernels $(call CI_HAS,browser servers)
	$(FOUND) $(call CI_HAS,$(REQUIRED)) $(PYTEST) --numprocesses=2 --dist=worksteal --ignore=tests/cluster $(QUICK) \
		$(call CI_HAS,--durations=30 --durations-min=5)

browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ apt-get update -q && apt-get install -y -q --no-install-recommends chromium chromium-driver; } >/dev/null

# Network namespaces (iproute2, and root), a Prometheus, and an emulator of ARM with a compiler for it, for tests that
# ask for them.
SERVERS := iproute2 prometheus $(if $(filter x86_64,$(shell uname -m)),qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
servers:
	@command -v ip >/dev/null && command -v prometheus >/dev/null && \
		{ [ "$$(uname -m)" != x86_64 ] || { command -v qemu-aarch64 && command -v aarch64-linux-gnu-gcc; } >/dev/null; } || \
		{ apt-get update -q && apt-get install -y -q --no-install-recommends $(SERVERS); } >/dev/null

# Tests of tests/cluster start a real control plane, and are skipped where its programs are missing; in CI (CI=true) that is a failure.
# They mostly wait, so three modules run at a time, each worker with a control plane of its own; the longest one comes first
# (tests/cluster/conftest.py).
live: $(VENV)/dev.stamp library $(call CI_HAS,servers lab-binaries)
	$(call CI_HAS,env SLACKTIDE_REQUIRE_LAB=1 SLACKTIDE_REQUIRE_SERVERS=1) $(PYTEST) --numprocesses=3 --dist=loadfile --no-loadscope-reorder \
		--ignore=tests/cluster/test_live_image.py tests/cluster

# What tests/cluster starts: found, or built with Go into the user's cache folder (about 8 minutes, once).
lab-binaries: $(VENV)/run.stamp
	$(BIN)/slacktide lab binaries

# What is made from the chart (charts/slacktide): plain manifests, Kustomizations, parts of its schema, the table of values.
manifests: $(VENV)/dev.stamp
	env PYTHONPATH=tests $(BIN)/python tests/support/chart_files.py

# The kernels as Numba compiles them here, all together: they are linked, and decide as in the library.
compiled: $(VENV)/dev.stamp
	env SLACKTIDE_JIT=1 $(PYTEST) tests/kernels/runtime/test_linking.py tests/test_decision_hashes.py tests/engine/test_warm_up.py

# Objects that are valid by their schemas, drawn at random: other ones than `make test` has, for as long as is said. Ends
# with 1 where anything fails; the seed that is printed plays it again.
HOURS ?= 1
fuzz: $(VENV)/dev.stamp library
	$(FOUND) $(LEASH) $(BIN)/python bench/fuzz.py --hours $(HOURS)

# The library of the older level of processors decides as that of the newer one, which all other tests use.
levels: $(VENV)/dev.stamp library
	@if [ -n "$$(ls src/slacktide/kernels/library/*-x86-64-v2.so 2>/dev/null)" ]; then \
		env SLACKTIDE_CPU=x86-64-v2 $(PYTEST) tests/test_decision_hashes.py; \
	else echo "levels: there is no library for x86-64-v2"; fi

# The kernels as plain Python: shows a result that only compilation (overflow, unchecked bounds) brought about.
# Only the files that have such tests: reading all of them takes as long as many of these tests.
UNCOMPILED = $(PYTEST) --numprocesses=2 --dist=worksteal -m uncompiled \
	$(shell grep -rlE --include='test_*.py' --exclude-dir=cluster '\.uncompiled\b' tests)

uncompiled: $(VENV)/dev.stamp
	$(FOUND) NUMBA_DISABLE_JIT=1 $(UNCOMPILED) $(QUICK)

# The same, recorded: fails for a kernel that no test called together with its twin (tests/support/called.py).
twins: $(VENV)/dev.stamp
	$(FOUND) NUMBA_DISABLE_JIT=1 $(UNCOMPILED) -p support.called

# The live scheduler on a simulated cluster, for so many simulated hours, each seed another story of faults.
HOURS ?= 100
SEED  ?= 1000
soak: $(VENV)/dev.stamp library
	$(LEASH) $(BIN)/python tests/simulated/soak.py --hours $(HOURS) --first $(SEED)

# Rules of the live path that are broken, one at a time: a seed has to find each within a minute of processor time.
soak-mutants: $(VENV)/dev.stamp library
	$(LEASH) $(BIN)/python tests/simulated/mutants.py

# What users get is the wheel: build it, install it alone, run it outside the checkout.
smoke: $(VENV)/dev.stamp
	$(LEASH) bash .ci/smoke $(BIN)/python build/smoke

# What goes to PyPI, into dist/: built, checked, and used as its users will.
release: $(VENV)/release.stamp
	$(LEASH) packaging/release $(BIN)/python dist

# The base of the image and the day of Debian's packages, as they are today, into Containerfile: for a commit.
base:
	@digest=$$(skopeo inspect --format '{{.Digest}}' docker://docker.io/library/debian:trixie-slim) && \
		sed -i -e "s/^\(ARG BASE=.*\)@sha256:.*/\1@$$digest/" -e "s/^ARG SNAPSHOT=.*/ARG SNAPSHOT=$$(date -u +%Y%m%dT000000Z)/" Containerfile

# The image of Containerfile without a container daemon, into build/image (as root; packaging/image says what it needs),
# and its file system run as the scheduler on a real API server. The wheel: of dist/, else of `make smoke`.
IMAGE_TOOLS := buildah mmdebstrap
image: $(VENV)/release.stamp
	@command -v $(IMAGE_TOOLS) >/dev/null && [ "$$(command -v $(IMAGE_TOOLS) | wc -l)" = 2 ] || [ "$(CI)" != true ] || \
		{ apt-get update -q && apt-get install -y -q --no-install-recommends $(IMAGE_TOOLS); } >/dev/null
	@wheel=$$(ls dist/*-manylinux*_$$(uname -m).whl build/smoke/*_$$(uname -m).whl 2>/dev/null | head -n 1); \
		[ -n "$$wheel" ] || { echo "image: no wheel of slacktide is in dist/; make release" >&2; exit 2; }; \
		PYTHON=$(BIN)/python $(LEASH) packaging/image "$$wheel" build/image
	env SLACKTIDE_IMAGE=$(abspath build/image) $(call CI_HAS,SLACKTIDE_REQUIRE_LAB=1) $(PYTEST) tests/cluster/test_live_image.py

$(VENV)/release.stamp: packaging/requirements.lock $(VENV)/dev.stamp
	$(INSTALL) packaging/requirements.lock
	$(PIP) check
	@touch $@

# Known vulnerabilities of what the locks name; packaging/accepted.txt says which are accepted. Asks pypi.org.
audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip --disable-pip-version-check --quiet $(LOCKED) -r packaging/audit.lock
	build/audit/bin/python packaging/audit.py $(wildcard requirements*.lock packaging/*.lock)

# The workflows of GitHub, read by actionlint (built with Go).
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
workflows: $(VENV)/dev.stamp
	@[ -x $(BIN)/actionlint ] || env GOBIN=$(abspath $(BIN)) go install $(ACTIONLINT)
	$(BIN)/actionlint .github/workflows/*.yml

# A hundredth of the month of a whole cell (docs/benchmarks.md): that long runs stay whole, not how fast they are.
hundredth: $(VENV)/dev.stamp
	$(LEASH) $(BIN)/python bench/month.py --fraction 0.01

# The tables of docs/benchmarks.md and docs/optimisations.md, measured anew (some twenty minutes, on a machine that does nothing else):
# all, or ONLY="light growth"; with SMALL=1 tiny, and without writing into docs/.
benchmarks: $(VENV)/run.stamp library
	$(LEASH) $(BIN)/python bench/tables.py $(if $(SMALL),--small) $(ONLY)

# The notebooks are run for it, which takes about a minute. Stops at a warning (a link that leads nowhere, a page that the navigation lacks) and at what a browser would fetch from
# elsewhere.
docs: $(VENV)/dev.stamp library
	$(LEASH) $(BIN)/python website/notebooks.py
	env NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python website/check.py build/site
	@echo "The site is in build/site; open build/site/index.html."

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "slacktide needs Python 3.11 or later; name one: make PYTHON=python3.11 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/compiler.stamp: requirements-compiler.lock | $(VENV)/bin/python
	$(INSTALL) requirements-compiler.lock
	@touch $@

$(VENV)/base.stamp: requirements.lock pyproject.toml $(VENV)/compiler.stamp
	$(INSTALL) requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/run.stamp: requirements-experiments.lock $(VENV)/base.stamp
	$(INSTALL) requirements-experiments.lock
	$(PIP) check
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/run.stamp
	$(INSTALL) requirements-dev.lock
	$(PIP) check
	@touch $@

# After a change of the dependencies in pyproject.toml (needs uv): exact versions and hashes for every platform.
UV_FLAGS   := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-header --no-annotate
UV_COMPILE := uv pip compile pyproject.toml requirements-build.in $(UV_FLAGS)
lock:
	$(UV_COMPILE) --extra devices --output-file requirements.lock
	$(UV_COMPILE) --extra experiments --extra plugins --constraints requirements.lock --output-file requirements-experiments.lock
	$(UV_COMPILE) --extra dev --constraints requirements-experiments.lock --output-file requirements-dev.lock
	echo numba | uv pip compile - --constraints requirements-experiments.lock $(UV_FLAGS) --output-file requirements-compiler.lock
	uv pip compile packaging/requirements.in --constraints requirements-dev.lock $(UV_FLAGS) --output-file packaging/requirements.lock
	uv pip compile packaging/audit.in --constraints requirements-dev.lock $(UV_FLAGS) --output-file packaging/audit.lock

clean:
	rm -rf $(VENV) build dist
