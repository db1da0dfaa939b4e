.DEFAULT_GOAL := help
.PHONY: help setup demo quick test slow static lint types imports drift unit soak e2e-tools e2e packages harms schemas oracle capture-reviews bench bench-peers mutants browser engines docs fuzz generate new-policy lock image image-tree install-yaml release-check sbom audit-dependencies clean

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Tools of their own environment, so that `make setup` stays small.
SUPPLY_CHAIN := build/supply-chain
BROWSER := build/browser
DOCS := build/docs
ENGINES := build/engines
FUZZ := build/fuzz/venv
# Where editors, mypy and import-linter look for the packages. git ignores the links, and no installation needs them.
LINKS := $(addprefix src/gpugate/,certs policies tools webhook)
COUNTS ?= small
K ?=
T ?=
MINUTES ?=
RUNS ?=
CLUSTER ?=
BASE ?=
# Two control planes side by side, but one cluster of kind's, and one stage for all harms.
E2E_PROCESSES = $(if $(CLUSTER)$(findstring harms,$(K)),,-n 2)
IMAGE ?=
HELM ?= helm
INSTALL_YAML ?= dist/install.yaml

# The programs that tests start, and the tests, are compiled once, even where the environment keeps Python from it.
export PYTHONDONTWRITEBYTECODE :=

help: ## What there is
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## A virtual environment in .venv with everything, from the hashed lock, and links for editors

$(LINKS): src/gpugate/%:
	@ln -s ../../$* $@

$(READY): requirements/dev.txt pyproject.toml | $(LINKS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: gpugate needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
		{ rm -rf .venv; echo "error: python3-venv is missing; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@# compat: src on the path and nothing else. The finder of other modes slows every start of Python.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat -e .
	@touch $@

demo: $(READY) ## The main job on real input, without a cluster; ends with the path of an audit for a browser
	@PYTHONPATH=tests/webhook $(BIN)/python e2e/demo.py

quick: static ## Static checks and the tests of changed files, in under a minute; BASE=COMMIT instead of the merge base with main
	@$(BIN)/python tests/quick/quick.py $(if $(BASE),--base $(BASE))

test: static unit ## Everything that is checked before a change lands

# Each takes one processor; types, which take longest, start first.
static: $(READY)
	@$(MAKE) --no-print-directory -j 2 types lint drift imports

lint: $(READY)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy -p gpugate

imports: $(READY)
	$(BIN)/lint-imports --no-cache

drift: $(READY)
	$(BIN)/python -m gpugate.tools --check

# Two processes share the tests.
unit: $(READY)
	@$(BIN)/python tests/unit/unit.py -q

slow: $(READY) ## Servers under load and faults; COUNTS=full for as often as it takes to believe it, and all harms
	@# Growth is measured in CPU seconds, so its tests can share the machine; the others measure time.
	$(BIN)/pytest -q tests/slow/test_growth.py -n 2 --dist worksteal --counts $(COUNTS)
	$(BIN)/pytest -q tests/slow --ignore tests/slow/test_growth.py --counts $(COUNTS)
	$(if $(filter full,$(COUNTS)),$(MAKE) harms)

soak: $(READY) ## Traffic, reloads, rotations, a failing API server and hostile bodies at once, for MINUTES=120
	$(BIN)/pytest -q -n0 tests/slow/test_soak.py --minutes $(or $(MINUTES),120)

e2e-tools: $(READY) ## Build the programs of a control plane, Helm and a registry, once (needs Go 1.26; 22 minutes on two cores)
	@$(BIN)/python e2e/tools.py

e2e: $(READY) ## Against a real control plane; K=scheduled chooses tests, K=prometheus builds Prometheus first, CLUSTER=kind takes Docker and kind
	$(if $(findstring prometheus,$(K)),@$(BIN)/python e2e/tools.py prometheus)
	$(BIN)/pytest -q e2e $(E2E_PROCESSES) $(if $(K),-k "$(K)") $(if $(CLUSTER),--cluster $(CLUSTER))

packages: $(READY) ## What reaches people: the chart, installed by Helm, the image, hooks of pre-commit, the Action, shells
	$(BIN)/pytest -q e2e/chart e2e/image e2e/integrations e2e/rendering -n 2

harms: $(READY) ## What policies prevent, on the real Karpenter and KEDA; M=quick shows some, RECORD=1 writes the pages
	@$(BIN)/python e2e/tools.py harms
	$(BIN)/pytest -q e2e/harms $(if $(M),-m $(M)) $(if $(RECORD),--record-harms)
	$(if $(RECORD),$(BIN)/python -m gpugate.tools)

schemas: $(READY) ## Make the schema tables again, from the pinned releases' Go modules (needs Go)
	$(BIN)/python -m gpugate.tools.schema_tables

oracle: $(READY) ## Ours against the own code of Karpenter and Kubernetes on random input; COUNTS=full for 20,000 cases
	@$(BIN)/python e2e/tools.py oracle
	$(BIN)/pytest -q e2e/oracle --counts $(COUNTS)

capture-reviews: $(READY) ## Record again the reviews in tests/fixtures/reviews, from a real API server
	@PYTHONPATH=e2e:tests/webhook $(BIN)/python e2e/capture_reviews.py

bench: $(READY) ## How fast it is; BENCH='--save FILE' keeps it, BENCH='--compare FILE' fails on what got slower
	@PYTHONPATH=tests/webhook $(BIN)/python tests/bench/bench.py $(BENCH)

bench-peers: $(READY) ## gpugate beside Gatekeeper and native policies on one API server, in one run; BENCH='--save FILE' keeps the figures
	@$(BIN)/python e2e/tools.py
	@$(BIN)/python e2e/tools.py peers
	@PYTHONPATH=e2e:tests/webhook $(BIN)/python tests/bench/peers.py $(BENCH)

mutants: $(READY) ## Make small changes to the program and expect a test to fail; M=certs/plan.py one module, SHARE=5 a 5 % sample, AGAIN=1 survivors
	@$(BIN)/python tests/mutants/mutants.py $(M) $(if $(SHARE),--share $(SHARE)) $(if $(AGAIN),--again)

browser: $(BROWSER)/.ready $(LINKS) ## The audit's HTML report in a real Chromium; screenshots in build/audit-report
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || \
		{ echo "error: chromium is missing; on Debian: apt-get install chromium" >&2; exit 1; }
	PYTHONPATH=src $(BROWSER)/bin/python -m pytest -q tests/browser $(if $(K),-k "$(K)")

$(BROWSER)/.ready: requirements/browser.txt
	@$(PYTHON) -m venv $(BROWSER)
	@$(BROWSER)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt
	@touch $@

engines: $(ENGINES)/.ready $(LINKS) ## The fleet report on a real Spark and ClickHouse agrees row by row with DuckDB (needs Java 17); TRINO=URL adds a server
	@command -v java >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install -qq -y --no-install-recommends default-jre-headless >/dev/null; } || \
		{ echo "error: java is missing; on Debian: apt-get install default-jre-headless" >&2; exit 1; }
	PYTHONPATH=src SPARK_LOCAL_IP=127.0.0.1 TRINO='$(TRINO)' $(ENGINES)/bin/python -m pytest -q tests/engines $(if $(K),-k "$(K)")

$(ENGINES)/.ready: requirements/engines.txt
	@$(PYTHON) -m venv $(ENGINES)
	@$(ENGINES)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/engines.txt
	@touch $@

docs: $(DOCS)/.ready ## The documentation as a site, in build/site; any warning or broken link fails it
	@rm -rf build/site
	@$(DOCS)/bin/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --nitpicky \
		--conf-dir docs --doctree-dir build/docs/doctrees . build/site
	@$(DOCS)/bin/python -I docs/site/check_links.py build/site

$(DOCS)/.ready: requirements/docs.txt
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

fuzz: $(FUZZ)/.ready $(LINKS) ## Hostile bytes for everything that reads them, MINUTES for each target; T=reviews chooses one, RUNS=2000 the same inputs each time
	$(FUZZ)/bin/python tests/fuzz/fuzz.py $(T) --minutes $(or $(MINUTES),1) $(if $(RUNS),--runs $(RUNS))

$(FUZZ)/.ready: requirements/fuzz.txt
	@$(PYTHON) -m venv $(FUZZ)
	@$(FUZZ)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	@echo "$(CURDIR)/src" > "$$($(FUZZ)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/gpugate.pth"
	@touch $@

generate: $(READY) ## Write again what is generated from the catalogue
	$(BIN)/python -m gpugate.tools

new-policy: $(READY) ## The four places of a new policy: make new-policy ID=pods/some-bad-pattern KIND=POD
	@$(BIN)/python -m gpugate.tools.new_policy $(ID) $(KIND)

lock: ## Resolve the dependencies again (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra webhook pyproject.toml -o requirements/runtime.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml -o requirements/check.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra dev --allow-unsafe pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group build --allow-unsafe -o requirements/build.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group supply-chain --allow-unsafe -o requirements/supply-chain.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group pyproject.toml:browser --allow-unsafe pyproject.toml -o requirements/browser.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group docs -o requirements/docs.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra fleet --group pyproject.toml:engines --allow-unsafe pyproject.toml -o requirements/engines.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group integrations --allow-unsafe -o requirements/integrations.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra webhook --group pyproject.toml:fuzz pyproject.toml -o requirements/fuzz.txt
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --group go -o requirements/go.txt

image: ## Build the container image; IMAGE='BUILD_IMAGE=NAME@sha256:... RUNTIME_IMAGE=...' names the bases by digest
	@$(PYTHON) image/build.py $(IMAGE)

image-tree: $(READY) ## What the image holds, in build/image-tree, without a container engine
	@rm -rf build/image-tree
	@$(BIN)/python -I image/install.py build/image-tree

install-yaml: ## The objects of the Helm chart with its default values, in dist/install.yaml; HELM=PATH names a Helm
	@mkdir -p $(dir $(INSTALL_YAML))
	@$(HELM) template gpugate charts/gpugate --namespace gpugate --no-hooks > $(INSTALL_YAML) || { rm -f $(INSTALL_YAML); exit 1; }

release-check: ## Build wheel and sdist in dist/, install each into an empty environment, and run check, audit and serve
	@$(PYTHON) -I e2e/release_check.py

sbom: image-tree $(SUPPLY_CHAIN)/.ready ## What is in the image, as CycloneDX: dist/gpugate-VERSION.cdx.json
	@$(SUPPLY_CHAIN)/bin/python -I image/bill_of_materials.py build/image-tree dist

audit-dependencies: $(SUPPLY_CHAIN)/.ready ## Ask for known vulnerabilities of what is in the image
	@$(SUPPLY_CHAIN)/bin/python -I image/advisories.py requirements/runtime.txt

$(SUPPLY_CHAIN)/.ready: requirements/supply-chain.txt
	@$(PYTHON) -m venv $(SUPPLY_CHAIN)
	@$(SUPPLY_CHAIN)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/supply-chain.txt
	@touch $@

clean: ## Remove what the other targets made
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis src/gpugate.egg-info
	rm -f $(LINKS)
