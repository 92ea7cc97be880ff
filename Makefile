# Every task a newcomer needs. `make demo` and `make test` set everything up by themselves; nothing else comes first.

VENV      := .venv
PYTHON    := $(VENV)/bin/python
STAMP     := $(VENV)/.installed
MODELS    := $(VENV)/.models
SYSTEM    := $(VENV)/.system
NODE      := proto/node_modules/.bin/buf
AXE       := tests/browser/node_modules/.package-lock.json
RAPIDOCR  := .venv-rapidocr/.installed
BASE      ?= python3.11
JOBS      ?= 2

.PHONY: help docs rapidocr demo test test-long lint format proto bench setup clean wheels-arm64 test-arm64 test-systemd samples screens

help:  ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(STAMP) $(MODELS)  ## Run the main job on sample photos; FILES="a.jpg b.jpg" on yours, KEEP=1 keeps serving.
	@$(VENV)/bin/docferry demo $(FILES) $(if $(KEEP),--keep)

test: $(STAMP) $(MODELS) $(NODE) $(AXE) $(SYSTEM)  ## Run all tests that take seconds.
	@$(PYTHON) -m pytest -n $(JOBS) --dist loadgroup -m "not long" $(ARGS)

test-long: $(STAMP) $(MODELS) $(NODE) $(AXE) $(SYSTEM)  ## Run the tests that take minutes.
	@$(PYTHON) -m pytest -n $(JOBS) --dist loadgroup -m long $(ARGS)

test-arm64: $(STAMP)  ## Install and run the edge on an emulated arm64 Debian without network (minutes; as root).
	@deploy/install_debian_packages.sh deploy/arm64/apt-packages.txt
	@PYTHON=$(PYTHON) deploy/arm64/test.sh

test-systemd: $(STAMP)  ## Install the edge on a booted Debian and see the hardened unit work (a minute or two; as root).
	@deploy/install_debian_packages.sh deploy/systemd/apt-packages.txt
	@PYTHON=$(PYTHON) deploy/systemd/test.sh

lint: $(STAMP) $(NODE)  ## ruff, mypy strict, import contracts, shellcheck, buf.
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/shellcheck --external-sources .ci/run $$(git ls-files '*.sh')
	@PYTHON=$(PYTHON) proto/lint.sh

format: $(STAMP)  ## Format the code and sort its imports.
	@$(VENV)/bin/ruff check --fix-only --quiet
	@$(VENV)/bin/ruff format

proto: $(STAMP) $(NODE)  ## Generate code from proto/, lint it and compare it with the baseline.
	@PYTHON=$(PYTHON) proto/generate.sh
	@PYTHON=$(PYTHON) proto/lint.sh

docs: $(STAMP) $(MODELS)  ## Generate docs/settings.md, docs/api.md and the picture.
	@$(PYTHON) docs/generate.py && $(PYTHON) docs/picture.py

bench: $(STAMP) $(MODELS) $(RAPIDOCR)  ## Measure on documents of your own: make bench DATA=DIR [NAME=end_to_end].
	@$(PYTHON) -m benchmarks.$(or $(NAME),end_to_end) --data $(DATA) $(ARGS)

samples: $(STAMP) $(SYSTEM)  ## Make the demo's samples again.
	@$(PYTHON) -m benchmarks.generator.samples

screens: $(STAMP) $(MODELS) $(NODE) $(AXE) $(SYSTEM)  ## Test the pages in a browser and keep a picture of each in build/screens.
	@$(PYTHON) -m pytest -n $(JOBS) --dist loadgroup tests/browser --screens build/screens $(ARGS)
	@ls build/screens

wheels-arm64: $(STAMP)  ## Check that the edge installs on a Raspberry Pi from wheels alone (3.11 and 3.13).
	@deploy/check_arm64_wheels.sh

setup: $(STAMP) $(MODELS) $(NODE) $(AXE) $(SYSTEM)  ## Set everything up without running anything.

clean:  ## Remove everything that was set up.
	@rm -rf $(VENV) .venv-rapidocr proto/node_modules tests/browser/node_modules build

$(VENV)/bin/python:
	@echo "setup: virtual environment in $(VENV)"
	@$(BASE) -m venv $(VENV) || { echo "setup: Python 3.11 with venv is needed (BASE=/path/to/python3.11)" >&2; exit 1; }

$(STAMP): pyproject.toml deploy/constraints.txt | $(VENV)/bin/python
	@echo "setup: Python packages"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -c deploy/constraints.txt --editable '.[edge,cloud,dev]'
	@touch $@

$(MODELS): $(STAMP) shared/docferry/models.toml
	@echo "setup: models, by hash"
	@$(VENV)/bin/docferry models pull
	@touch $@

$(NODE): proto/package-lock.json
	@echo "setup: buf"
	@cd proto && npm ci --silent --no-audit --no-fund
	@touch $@

$(AXE): tests/browser/package-lock.json
	@echo "setup: axe-core"
	@cd tests/browser && npm ci --silent --no-audit --no-fund
	@touch $@

# Fonts for the document generator, systemd-analyze for the units, a browser for the pages: no registry has them.
$(SYSTEM): benchmarks/generator/apt-packages.txt deploy/apt-packages.txt tests/browser/apt-packages.txt | $(STAMP)
	@deploy/install_debian_packages.sh $^
	@touch $@

rapidocr: $(RAPIDOCR)  ## Set up RapidOCR, for comparison, in an environment of its own.

$(RAPIDOCR):
	@echo "setup: RapidOCR, for comparison, in an environment of its own"
	@$(BASE) -m venv .venv-rapidocr
	@.venv-rapidocr/bin/python -m pip install --quiet --disable-pip-version-check rapidocr==3.10.0 onnxruntime
	@touch $@
