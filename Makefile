# make run      start the app (the first time, this makes .venv and installs what it needs)
# make class    the same for a class in this computer's network, with a link and a code to scan; PORT: another one
# make test     formatting, lint, types, and the tests without which something could break unseen: before a commit
# make test-all everything, also what starts servers, clusters, kernels and installs the wheel: every night
# make test-changed  what make test leaves out and a change since the commit SINCE asks for
# make lint     formatting, lint and types only
# make unit     the tests that need no browser, of TESTS; make browser: those in a browser
# make wheel    build the wheel into dist/
# make site     build the site without a server into build/site, and its lesson in one file beside it
# make bench    measure speed, memory and page weight beside other tools (25 minutes on a quiet machine)
# make screens  take pictures of every page into docs/screens
# make accessibility  try every page with axe-core and write docs/accessibility.md
# make lock     make the lock files (requirements*.lock) again after a change of requirements*.txt
# make audit    ask the public list of known weaknesses about every installed package (needs a network)
# make image-check, make proxy-check   try the Dockerfile and the proxy without Docker (Linux, root)
# make cluster-check   start the pods of deploy/kubernetes/school without Kubernetes (Linux, root)
# make wheel-check  install the wheel with all it needs into an empty environment, and run it there
# make fuzz     hostile texts through everything that shows them; goes on where it was stopped
# make format   rewrite the code in the house format
# make bundle   make the explorer's script and style sheet again after a change of viz/explorer/js or css
# make clean    remove the environment and the caches
#
# PIP_OPTIONS   passed to pip, for instance another index with a smaller or a CUDA build of torch
# LOCK_OPTIONS  of make lock: --upgrade, or --upgrade-package NAME; without, each version stays that still fits
# CHROMIUM, FIREFOX   paths of a Chromium or Chrome, and of a Firefox, that are not on PATH
# TESTS, MARKS  of make unit: files or folders; and an expression of pytest's markers
# WORKERS       processes for the tests that need no browser; BROWSERS for the others
# COURSE        of make site: a course.toml of your own
# INPUTS        of make fuzz
# PARTS         of make bench: recording, training, patching, score, many, research, profiling, engines, sessions, weight, notebook, installing, clicks, page_switch, first_picture, long_texts, real_model, site, classroom, bounds, soak, cluster, cluster_soak, own_tests; all if empty
# SOAK_SECONDS  of the parts soak and cluster_soak (600)

SHELL := /bin/bash
.DEFAULT_GOAL := run
.DELETE_ON_ERROR:
.PHONY: run class test test-all test-changed lint unit browser weights browser-cluster wheel wheel-check site bench screens accessibility lock fuzz format bundle clean chromium firefox npm

BIN := .venv/bin
PIP_OPTIONS ?=
# Python compiles what it imports, when it does; to compile all that is installed takes longer than all the rest.
# So it must be allowed to keep that, whatever this shell says: each process would compile all of it again.
export PYTHONDONTWRITEBYTECODE :=
# Where there is no other npm.
export PATH := $(PATH):$(CURDIR)/.venv-npm/bin
QUIETLY = --quiet --disable-pip-version-check --no-input --no-compile $(PIP_OPTIONS)
LOCK = .venv-lock/bin/uv pip compile --quiet --config-file deploy/lock.toml $(LOCK_OPTIONS)
# Files whose hash is in the lock, and no others; nothing is built here, for that would fetch more.
HASHED = --require-hashes --no-deps --only-binary :all:
STALE = { echo "If requirements.txt was changed, run: make lock" >&2; exit 1; }
# One process a core, two at the least and six at the most: each may have a browser.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 2 ? 2 : n > 6 ? 6 : n)))
# A test in a browser waits a third of its time: for a page to draw, for the server to answer.
BROWSERS ?= $(shell echo $$(($(WORKERS) + 1)))
INPUTS ?= 10000
TESTS ?= tests
# What each marker says a test needs stands in pyproject.toml. The fast tests need none of these.
FAST := not (process or ray or wheel or firefox or walk or slow)
MARKS ?= $(FAST)
SINCE ?= origin/main
TYPED := app.py model pages viz

run: .venv/.installed-run
	$(BIN)/python -m viz.server

class: .venv/.installed-run
	@$(BIN)/python -m viz.command class $(PORT:%=--port %)

# The types take one core; the tests that need no browser have the other ones meanwhile.
test:
	$(MAKE) --no-print-directory --jobs=2 lint unit
	$(MAKE) --no-print-directory browser

test-all: firefox
	$(MAKE) --no-print-directory test MARKS=

# pytest ends with 5 where none of a part has these markers.
test-changed: firefox .venv/.installed-dev
	@marks=$$($(BIN)/python -m tools.tiers "$(SINCE)") && if [ -n "$$marks" ]; then \
	    $(MAKE) --no-print-directory --keep-going unit browser MARKS="$$marks" OR_NONE='|| test $$$$? = 5'; \
	fi

lint: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)

# One thread a process: workers that share the cores wait for each other's threads otherwise. Playwright keeps
# its thread's event loop, so what starts one of its own runs in other processes.
unit browser: export OMP_NUM_THREADS = 1
PYTEST = $(BIN)/python -m pytest -m "$(MARKS)" --dist loadgroup

unit: weights node_modules/.installed
	$(PYTEST) $(TESTS) --ignore=tests/browser -n $(WORKERS) $(OR_NONE)

browser: weights chromium node_modules/.installed
	$(PYTEST) tests/browser -n $(BROWSERS) $(OR_NONE)

# The tests of the browser, where the models lie on a cluster of two machines, both on this computer.
browser-cluster: export OMP_NUM_THREADS = 1
browser-cluster: weights firefox node_modules/.installed
	$(BIN)/python -m tools.on_cluster $(BIN)/python -m pytest tests/browser -n $(BROWSERS) --dist loadgroup

weights: .venv/.installed-dev
	$(BIN)/python -m tools.weights

# Needs nothing but Python.
wheel: | $(BIN)/pip
	@$(BIN)/python -m deploy.wheel dist

wheel-check: .venv/.installed-dev
	$(BIN)/python -m tools.try_wheel $(PIP_OPTIONS)

# COURSE: a course.toml of one's own. Ten seconds; the tests build it too (tests/viz/site).
site: .venv/.installed-run
	$(BIN)/python -m viz.command site build/site $(COURSE:%=--course %)
	$(BIN)/python -m viz.command site build/lesson.html --lesson $(COURSE:%=--course %)

# Numbers from a busy machine are printed, but docs/bench and the README keep the last quiet ones.
bench: .venv/.installed-dev .venv-bench/.installed chromium
	$(BIN)/python -m bench $(PARTS)

screens: weights chromium
	$(BIN)/python -m tools.screens
	$(BIN)/python -m tools.jupyterlab_picture
	$(BIN)/python -m tools.chat_picture

accessibility: weights chromium
	$(BIN)/python -m tools.accessibility

# uv reads no settings of pip: another index is named in UV_DEFAULT_INDEX.
lock: .venv-lock/.installed
	$(LOCK) requirements.txt --output-file requirements.lock
	$(LOCK) requirements-dev.txt --constraint requirements.lock --output-file requirements-dev.lock
	$(LOCK) requirements-cluster.txt --constraint requirements.lock --output-file requirements-cluster.lock
	$(LOCK) requirements-uv.txt --output-file requirements-uv.lock
	$(LOCK) requirements-npm.txt --output-file requirements-npm.lock

audit: .venv/.installed-run
	@test -x .venv-audit/bin/pip-audit || { \
	    $(BIN)/python -m venv .venv-audit && \
	    .venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1; \
	}
	@$(BIN)/python -m deploy.audit .venv-audit/bin/pip-audit

# IMAGE_OPTIONS: --build-arg NAME=VALUE as for docker build; --share FOLDER for wheels on this machine;
# --space for the image of a Space of Hugging Face.
image-check: .venv/.installed-dev
	$(BIN)/python -m tools.try_image $(IMAGE_OPTIONS)

proxy-check: .venv/.installed-dev
	$(BIN)/python -m tools.try_proxy

cluster-check: .venv/.installed-dev
	$(BIN)/python -m tools.try_cluster

fuzz: .venv/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m tools.fuzz --inputs $(INPUTS) --workers $(WORKERS)

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bundle: node_modules/.installed
	npm run --silent bundle -- --outdir=viz/explorer/bundled

clean:
	rm -rf build .venv .venv-audit .venv-bench .venv-lock .venv-npm node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip's script is the last file a new environment gets, so it stands for the whole of it.
$(BIN)/pip:
	@for python in python3.11 python3 python; do \
	    if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "Making .venv with $$("$$python" --version)."; \
	        exec "$$python" -m venv .venv; \
	    fi; \
	done; \
	echo "Python 3.11 or newer with its venv module is needed, and none was found on PATH." >&2; \
	exit 1

# PyTorch has its own step: which build fits, and so its hash, is up to the machine and PIP_OPTIONS.
# What it needs besides CUDA is in the lock, so it is there already and stays.
.venv/.installed-run: requirements.lock requirements.txt | $(BIN)/pip
	@echo "Installing what the app needs. The first time this takes a few minutes."
	$(BIN)/python -m pip install $(QUIETLY) $(HASHED) -r requirements.lock -c requirements.txt || $(STALE)
	$(BIN)/python -m pip install $(QUIETLY) $$(grep ^torch== requirements.txt)
	@touch $@

.venv/.installed-dev: requirements-dev.lock requirements-dev.txt requirements.txt | $(BIN)/pip
	@echo "Installing what the app and its tests need. The first time this takes a few minutes."
	$(BIN)/python -m pip install $(QUIETLY) $(HASHED) -r requirements-dev.lock -c requirements.txt || $(STALE)
	$(BIN)/python -m pip install $(QUIETLY) $$(grep ^torch== requirements.txt)
	@touch .venv/.installed-run $@

.venv-lock/.installed: requirements-uv.lock | $(BIN)/pip
	$(BIN)/python -m venv .venv-lock
	.venv-lock/bin/python -m pip install $(QUIETLY) $(HASHED) -r requirements-uv.lock
	@touch $@

# BertViz's pages ask a content delivery network for these scripts; here they come from npm, where there is one.
.venv-bench/.installed: requirements-bench.txt | $(BIN)/pip
	@echo "Installing what the benchmarks measure beside us."
	$(BIN)/python -m venv .venv-bench
	.venv-bench/bin/python -m pip install $(QUIETLY) -r requirements-bench.txt
	if command -v npm >/dev/null; then \
	    npm install --silent --no-audit --no-fund --prefix .venv-bench/js requirejs@2.3.6 d3@5.7.0 jquery@2.2.4; \
	fi
	@touch $@

node_modules/.installed: package-lock.json package.json | npm
	npm ci --silent --no-audit --no-fund
	@touch $@

npm: | $(BIN)/pip
	@command -v npm >/dev/null || $(MAKE) --no-print-directory .venv-npm/.installed

.venv-npm/.installed: requirements-npm.lock | $(BIN)/pip
	@echo "Installing Node.js with npm, for the bundler of the explorer."
	$(BIN)/python -m venv .venv-npm
	.venv-npm/bin/python -m pip install $(QUIETLY) $(HASHED) -r requirements-npm.lock
	@touch $@

chromium:
	@if [ -n "$$CHROMIUM" ] || command -v chromium chromium-browser google-chrome >/dev/null; then \
	    exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium for the browser tests."; \
	    apt-get update -q && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core </dev/null; \
	else \
	    echo "The browser tests need Chromium or Chrome. Install one, or set CHROMIUM to its path." >&2; \
	    exit 1; \
	fi

firefox: chromium # one after the other: both come from the same packages
	@if [ -n "$$FIREFOX" ] || command -v firefox-esr firefox >/dev/null; then \
	    exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Firefox for the tests of the site."; \
	    apt-get update -q && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends firefox-esr </dev/null; \
	else \
	    echo "The tests of the site need Firefox. Install it, or set FIREFOX to its path." >&2; \
	    exit 1; \
	fi
