# make demo: set everything up and run a side-by-side study to a report.
# make test: set everything up and pass the tests.      make lint: style and types.
# make soak: the long tests of reliability, see docs/reliability.md.
PYTHON ?= $(shell for name in python3.11 python3.12 python3 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null; \
	then echo $$name; break; fi; done)
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: demo test soak figures docs hashes release lint format clean

demo: $(READY)
	$(BIN)/treesyntax study recipes/demo/for2lam.yaml

# Three processes for two cores: many tests wait for others or for a time to pass. Bytecode is kept, whatever
# the user's environment says: hundreds of commands are started, and asserts are rewritten once.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal tests

# The long versions of the tests of tests/reliability/README.md: an hour on two cores, with a real Slurm
# and a million pairs. And all methods where the short versions take those of each kind.
LONG = tests/reliability tests/bridges tests/model tests/trees/formats tests/data/sets tests/methods/test_contract.py \
	tests/commands/test_translate.py tests/study/run/test_crashes.py tests/study/run/test_code.py \
	tests/parsers/test_hostile_lines.py tests/plugins/test_plugin.py tests/test_torchaudio_remedy.py
soak: $(READY)
	@rm -f $(VENV)/figures
	TREESYNTAX_SOAK=1 TREESYNTAX_FIGURES=$(abspath $(VENV)/figures) OMP_NUM_THREADS=1 \
		$(BIN)/python -m pytest -n 3 --dist worksteal --durations=10 $(LONG); \
		status=$$?; $(BIN)/python tests/reliability/figures.py $(VENV)/figures; exit $$status

# The pictures of the README and the docs, and the pages of methods, recipe keys and commands.
figures: $(READY)
	$(BIN)/treesyntax analyse idea --out docs/figures
	$(BIN)/treesyntax report docs/results/demo/items.jsonl
	mv docs/results/demo/verdict.svg docs/figures/demo.svg
	$(BIN)/treesyntax report docs/results/map/map.csv
	mv docs/results/map/map.svg docs/figures/map.svg
	$(BIN)/python .ci/method_pages.py
	$(BIN)/python .ci/reference_pages.py

# The documentation as a site, in the folder site; any warning is an error, and so is prose against the rules or a
# notebook that does not run.
docs: $(READY)
	$(BIN)/python .ci/prose.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[docs,notebook]'
	$(BIN)/python -m mkdocs build --strict --config-file .ci/mkdocs.yml
	$(BIN)/python -m pytest tests/docs/test_notebook.py

# The lock file with hashes, and what CUDA needs beside it, from the pins of requirements.lock.
hashes: $(READY)
	$(PYTHON) -m venv $(VENV)/hashes
	$(VENV)/hashes/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)/hashes/bin/python .ci/hash_lock.py

# Source package and wheel in dist/, built as an index's users build them, and checked. Nothing is uploaded.
release: $(READY)
	$(BIN)/python .ci/release.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The lock file pins every package; where pip's configuration offers another build of the same
# torch (CPU or CUDA), that one is taken.
$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "make needs Python 3.11 or 3.12, as fairseq does; found $$(python3 --version 2>&1). Install one, run make PYTHON=/path/to/python3.11, or do without fairseq: pip install ." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' || { echo "make needs Python 3.11 or 3.12, as fairseq does, but $(PYTHON) is $$($(PYTHON) --version 2>&1). Without fairseq: pip install ." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "ready; now: source $(BIN)/activate"

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache
