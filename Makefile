# HumanJudge. `make` lists what there is. Works from any folder: make -C /path/to/humanjudge run
# Every path here is relative, so that the folder's own name may hold spaces.

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-thorough test-containers check bench torture dist stats clean
MAKEFLAGS += --no-print-directory

# Without its bytecode every process that is started compiles all it imports anew.
unexport PYTHONDONTWRITEBYTECODE

PY = .venv/bin/python
# On SQLite alone: no server but the broker, no process, no browser.
ON_SQLITE = -q --workers 2 -p no:schemathesis --nomigrations

help:
	@echo 'make run        start HumanJudge here: make run [PORT=8000] [HOST=127.0.0.1] [HUMANJUDGE_DATA=var]'
	@echo 'make test       every test, with real servers, processes and a browser'
	@echo 'make test-fast  a minute: the maths, and the first test of each file that needs a database'
	@echo 'make test-thorough  every test, with whole data sets and many more examples'
	@echo 'make test-containers  build the image, start both container ways, vote, kill, replay: needs Docker'
	@echo 'make check      formats, types, imports, templates, migrations, deployment, known holes'
	@echo 'make bench      measure: votes, seals, replay, pages, rendering'
	@echo 'make torture    faults at full size, for hours: make torture [KILLS=1000] [HOURS=24] [SEED=1]'
	@echo 'make dist       build the wheel that `pip install` and `uvx` take, in dist/'
	@echo 'make stats      sizes, and how readable the code is: make stats [SINCE=commit]'
	@echo 'make clean      remove .venv and caches; what people voted (var/) is kept'

run: .venv/.installed
	@exec $(PY) manage.py up

test: .venv/.installed-dev
	@$(PY) -m tests.suite $(ARGS)

# Whole data sets, each hostile picture in each renderer, and the maths with a thousand examples.
test-thorough: .venv/.installed-dev
	@HYPOTHESIS_PROFILE=many $(PY) -m tests.suite --thorough $(ARGS)
	@TEST_DATABASE=sqlite $(PY) -m pytest $(ON_SQLITE) --hypothesis-profile thorough --needs pure $(ARGS)

# On demand: it needs an engine with compose, and ports 80 and 443.
test-containers: .venv/.installed-dev
	@TEST_CONTAINERS=1 TEST_DATABASE=sqlite $(PY) -m pytest -q --workers 1 -p no:schemathesis tests/humanjudge/server/test_containers.py $(ARGS)

test-fast: .venv/.installed-dev
	@TEST_DATABASE=sqlite $(PY) -m pytest $(ON_SQLITE) --quick --hypothesis-profile fast --needs pure,db $(ARGS)

check: .venv/.installed-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict
	@echo 'lint-imports' && $(PY) -c 'from importlinter.cli import lint_imports_command as run; run()' --no-logo
	find . -name '*.html' -path '*/templates/*' -not -path './.venv/*' -exec .venv/bin/djade --check {} +
	$(PY) -m djlint --lint --quiet templates
	$(PY) -m bench.readability --hold
	$(call WITH_PRODUCTION_SETTINGS, $(PY) manage.py makemigrations --check --dry-run)
	$(call WITH_PRODUCTION_SETTINGS, $(PY) manage.py check --deploy --fail-level WARNING)
	$(AUDIT)
	@printf '\nEvery check passed.\n'

bench: .venv/.installed-dev
	@$(PY) -m bench

torture: .venv/.installed-dev
	@$(PY) -m bench.torture --kills $(or $(KILLS),1000) --hours $(or $(HOURS),24) --seed $(or $(SEED),1)

dist: .venv/.installed-dev
	@rm -rf dist && $(PY) -m hatchling build -t wheel

stats: .venv/.installed-dev
	@$(PY) -m bench.stats && echo && $(PY) -m bench.readability $(if $(SINCE),--since $(SINCE))

clean:
	rm -rf .venv dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- how it is done -----------------------------------------------------------------------------

# The settings of a server behind an HTTPS proxy, on a data folder that is thrown away.
define WITH_PRODUCTION_SETTINGS
@echo '$(strip $(1))'; data=$$(mktemp -d) && trap 'rm -rf "$$data"' EXIT && \
  HUMANJUDGE_DATA="$$data" DATABASE_URL= REDIS_URL= DEBUG=false HTTPS=true \
  SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(64))')" \
  ALLOWED_HOSTS=judge.example.org CSRF_TRUSTED_ORIGINS=https://judge.example.org $(strip $(1))
endef

# One package is asked for first: a service that does not answer, or knows nothing of it, is said.
define AUDIT
@echo 'pip-audit'; list=$$(mktemp) && trap 'rm -f "$$list"' EXIT; \
  audit="$(PY) -m pip_audit --no-deps --disable-pip --progress-spinner off -r"; \
  grep -i '^django==' requirements.txt >"$$list"; said=$$($$audit "$$list" 2>&1) || true; \
  case "$$said" in \
    *'No known vulnerab'*'could not be audited'* | *rror* | '') \
      echo 'pip-audit: its service does not answer, so known holes were NOT looked up';; \
    *) $(PY) -m pip freeze --exclude-editable >"$$list" && $$audit "$$list";; esac
endef

.venv/.installed: requirements.txt pyproject.toml
	$(call INSTALL, requirements.txt)

.venv/.installed-dev: requirements.txt requirements-dev.txt pyproject.toml
	$(call INSTALL, requirements-dev.txt)

# uv is quick; where it is not to be had, or knows no mirror that pip knows, pip does it.
define INSTALL
@$(FIND_PYTHON)
@echo 'Installing $(strip $(1)) into .venv: a minute or two the first time'
@$(PY) -m uv --version >/dev/null 2>&1 || \
  $(PY) -m pip install --quiet --disable-pip-version-check uv >/dev/null 2>&1 || true
@$(PY) -m uv pip install --quiet --python $(PY) -r $(strip $(1)) --editable . 2>/dev/null || \
  $(PY) -m pip install --quiet --disable-pip-version-check -r $(strip $(1)) --editable .
@touch $@
endef

define FIND_PYTHON
if ! $(PY) -c '' 2>/dev/null; then \
  for python in python3.14 python3.13 python3.12 python3.11 python3; do \
    if "$$python" -c 'import sys, ensurepip; \
        sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; \
    then echo "Creating .venv with $$("$$python" --version)"; rm -rf .venv; \
      exec "$$python" -m venv .venv; fi; done; \
  echo "HumanJudge needs Python 3.11 to 3.14 with its venv module (Debian: python3-venv);" \
    "here is $$(python3 --version 2>/dev/null || echo 'no python3')." >&2; exit 1; fi
endef
