# Everything goes through the virtual environment; another place for it: make check VENV=/some/folder
VENV ?= .venv
BIN := $(VENV)/bin
# What wfe is compared with has an environment of its own, which only `make bench` needs.
BENCH ?= build/bench-dbos
# A transaction id of its own for each `make run`.
TX := demo-$(shell date -u +%Y%m%dT%H%M%SZ)-$(shell echo $$PPID)

.NOTPARALLEL:
.PHONY: setup run check test crash schedules docs lint type fmt bench clean

setup: $(VENV)/installed  ## the environment, made again only when pyproject.toml has changed

$(VENV)/installed: pyproject.toml
	@python3 -c 'import sys; sys.version_info >= (3, 11) or sys.exit("wfe needs Python 3.11 or newer as python3")'
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

run: setup  ## the weather report on the real file: up to the question (exit 20), the answer, the list
	$(BIN)/wfe run weather-report --tx $(TX) --until waiting; test $$? -eq 20
	$(BIN)/wfe step succeed weather-report:$(TX):approve-anomalies:invoke --response '{"approved": true, "by": "make run"}'
	$(BIN)/wfe executions list

check: lint type test  ## what must hold before a commit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: setup
	$(BIN)/mypy

# In one process more than there are processors; the hash seed is theirs in common, because the names of
# some tests show a set.
test: setup
	PYTHONHASHSEED=0 $(BIN)/pytest --numprocesses=auto

crash: setup  ## the long form of tests/crash: every crash point, many processes, many kills
	CRASH=full $(BIN)/pytest tests/crash

docs: setup  ## what of docs/ is made by programs: the reference, the recorded night shift, the table of the last benchmark
	$(BIN)/python -m tests.docs.write
	$(BIN)/python -m benchmarks.table

schedules: setup  ## the long form of tests about schedules: three years of 400 expressions, a virtual week
	SCHEDULES=full PYTHONHASHSEED=0 $(BIN)/pytest --numprocesses=auto tests/scheduling tests/acceptance/test_serve.py

fmt: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup $(BENCH)/installed  ## wfe, the floor below it and DBOS in one run: a table, and benchmarks/results/latest.json
	$(BIN)/python -m benchmarks --dbos $(BENCH)/bin/python

$(BENCH)/installed: benchmarks/requirements.txt
	python3 -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

clean:  ## everything that can be made again; the database in .wfe/ stays
	rm -rf $(VENV) build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
