# The one door: every job has a target here, and each target sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

N ?= 100000

# Tests start Python hundreds of times, and compiling our sources costs each half a second: write bytecode.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test full quick fuzz faults check lowest wheel release fix bench mutants docs site spark clean

demo: $(VENV)/.installed  ## Install judged into .venv and run it on the sample
	@$(BIN)/judged demo

# One worker more than there are processors: some tests wait for browsers and programs. Each file has one worker.
PYTEST = $(BIN)/python -m pytest -n $$(( $$(nproc 2>/dev/null || echo 2) + 1 )) --dist loadfile

test: $(VENV)/.tested  ## Run the tests and doctests, without the files that take longest
	$(PYTEST) -m "not page and not long"

full: $(VENV)/.tested spark  ## Run every test: simulations, Spark, the website, all pages in a browser, damaged files
	$(PYTEST) -m "not page"

quick: $(VENV)/.tested  ## Run the quick tests and all doctests, in less than a minute
	$(PYTEST) -m "not slow and not browser and not oracle and not page"

fuzz: $(VENV)/.tested  ## Read N damaged files, and fail where one ends in anything but a result or an error of ours
	PYTHONPATH=tests $(BIN)/python -m fuzz $(N)

faults: $(VENV)/.tested  ## Kill and interrupt commands that write, fill their disks, run them concurrently; ARGS="--help"
	PYTHONPATH=src:tests $(BIN)/python -m faults $(ARGS)

check: $(VENV)/.checked  ## Lint, types, layers, and whether the documentation and the numbers on its pages are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python tools/docs.py --check
	$(PYTEST) tests/docs -m page

lowest: $(VENV)-lowest/.installed  ## Try every command with the lowest versions of all dependencies
	PYTHONPATH=src $(VENV)-lowest/bin/python -m pytest -q -p no:cacheprovider -k "not full and not closed" \
	  tests/cli/test_every_command.py tests/interface/pages/test_home.py tests/scoring/evaluation/test_inputs.py tests/comparison/slicing/test_derived.py \
	  tests/scoring/judging/test_relational.py

wheel:  ## Build the wheel, and run it where there is no source tree
	rm -rf $(VENV)-wheel build/wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(VENV)-wheel/bin/python -m pip install --quiet "$$(echo build/wheel/judged-*.whl)[web]"
	$(VENV)-wheel/bin/python tools/try_wheel.py $(VENV)-wheel/bin

spark: $(VENV)-spark/.installed  ## Install a Spark server (500 MB), which the tests of Spark start where Java is too

release: $(VENV)/.installed  ## Build wheel and sdist, check them, try both on every Python of this machine; nothing is uploaded
	$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python tools/release.py

fix: $(VENV)/.checked  ## Let the linter mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.checked  ## Write generated pages, output in README and docs, notebooks, and pictures
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/notebooks.py
	$(BIN)/python tools/screenshots.py

site: $(VENV)/.tested  ## Build the documentation as a site that needs no network: build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python tools/website/check.py build/site

bench: $(VENV)/.benched  ## Compare with other tools (some minutes) and write docs/benchmarks.md
	$(BIN)/python bench/run.py
	$(BIN)/python bench/compare.py
	$(BIN)/python bench/mixing.py

mutants: $(VENV)/.tested  ## Change the code at random places, and list what no test notices: ARGS="--packages stats --sample 100"
	$(BIN)/python tools/mutants.py $(ARGS)

clean:  ## Remove what the other targets made
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-wheel $(VENV)-spark build .pytest_cache .hypothesis .ruff_cache bench/data

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)-lowest/.installed: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python tools/lowest.py > $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/python -m pip install --quiet -r $(VENV)-lowest/requirements.txt pytest hypothesis httpx
	@touch $@

# Not in .venv: pyspark and pyspark-client are two packages of one name, and would overwrite each other's files.
$(VENV)-spark/.installed:
	$(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-spark/bin/python -m pip install --quiet "pyspark>=4,<5"
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test --group docs
	@touch $@

$(VENV)/.checked: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --group check
	@touch $@

$(VENV)/.benched: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@
