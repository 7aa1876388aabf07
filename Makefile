# make reproduce      the experiments of the paper at the size of a laptop, with a page of results
# make reproduce-full DATA=/data   continues until there are enough runs to decide: about five and a half hours
# make test           the tests, on TensorFlow, and those of the library on JAX and torch
# make test-backends  the code of README, docs and examples on JAX and torch
# make test-versions  the tests of the library on Keras 3.3, 3.6, 3.9 and the newest
# make test-oldest    the same on Keras 3.3 alone
# make test-addons    the tests that need TensorFlow 2.15 and tensorflow-addons
# make test-slow      the tests that take minutes: full-size models, the embedded results
# make test-kills     every trainer killed twenty times in each of four settings
# make test-wheel     the wheel alone, in an empty environment for each backend
# make lint           the linter, the type checker, and the layers of the programs
# make graph          which folder of trainers imports which, as a graph in the language DOT
# make bench          milliseconds and ratios
# make figures        the pictures of README and docs
# make docs           the documentation as a site, build/site/index.html, with the notebook executed
# make notebook       the notebook, executed in place

PYTHON ?= python3
OTHERS = jax torch
BACKENDS = tensorflow $(OTHERS)
VENV = .venv/bin/python
ADDONS = .venv-addons/bin/python
# `make reproduce` needs neither JAX, torch, test tools nor CUDA: it makes a smaller environment unless the full one is there.
REPRODUCE = $(if $(wildcard .venv/done),.venv,.venv-reproduce)
PIP = -m pip --quiet --disable-pip-version-check install
# Versions of Keras besides the one in constraints/main.txt; each has constraints with the TensorFlow of its time.
VERSIONS = 3.3 3.6 3.9
OLDEST = $(firstword $(VERSIONS))
# The tests of the library; JAX and torch leave out what is marked `once`. The simulation is numpy alone, and tuning needs
# keras-tuner: the newest Keras is enough.
LIBRARY = tests/tfwarmup tfwarmup $(addprefix --ignore=tests/tfwarmup/,test_addons.py test_tuning.py analysis/test_simulation.py)
# What else depends on the backend.
PAGES = tests/test_readme.py tests/test_examples.py tests/tfwarmup/test_tuning.py

.PHONY: reproduce reproduce-full test test-backends test-versions test-oldest $(VERSIONS:%=test-keras-%) test-addons test-slow test-kills test-wheel lint graph bench figures docs notebook clean

reproduce: $(REPRODUCE)/done
	$(REPRODUCE)/bin/python -m trainers.reproduce

reproduce-full: .venv/done
	$(VENV) -m trainers.reproduce --full $(if $(DATA),--data=$(DATA))

test: .venv/done
	@echo "== tensorflow"
	KERAS_BACKEND=tensorflow $(VENV) -m pytest -q -n 2
	set -e; for backend in $(OTHERS); do \
		echo "== $$backend"; KERAS_BACKEND=$$backend $(VENV) -m pytest -q -n 2 $(LIBRARY); done

test-backends: .venv/done
	set -e; for backend in $(OTHERS); do \
		echo "== $$backend"; KERAS_BACKEND=$$backend $(VENV) -m pytest -q -n 2 $(PAGES); done

test-versions: .venv/done $(VERSIONS:%=test-keras-%)
	$(VENV) -m pytest -q -n 2 $(LIBRARY)

test-oldest: test-keras-$(OLDEST)

$(VERSIONS:%=test-keras-%): test-keras-%: .venv-keras-%/done
	.venv-keras-$*/bin/python -m pytest -q -n 2 $(LIBRARY)

test-addons: .venv/done .venv-addons/done
	$(ADDONS) -m pytest -q tests/addons tfwarmup/factors.py
	$(VENV) -m pytest -q -m addons

test-slow: .venv/done
	$(VENV) -m pytest -q -m slow -n 2 --dist loadgroup --durations=20

test-kills: .venv/done
	KILLED_RUNS=5 $(VENV) -m pytest -q -m slow -n 2 tests/trainers/test_resume.py -k every_trainer

test-wheel: .venv/done
	rm -rf build dist
	$(VENV) -m build --wheel --outdir dist . > /dev/null
	set -e; for backend in $(BACKENDS); do PYTHON=$(PYTHON) tests/wheel/try $$backend dist/*.whl; done

lint: .venv/done
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy
	.venv/bin/import-linter lint --no-cache --no-logo

graph: .venv/done
	.venv/bin/import-linter drawgraph trainers

bench: .venv/done
	$(VENV) -m benchmarks.import_time
	$(VENV) -m benchmarks.schedule_cost
	$(VENV) -m benchmarks.optimizer_step
	$(VENV) -m benchmarks.dynamic_warmup
	$(VENV) -m benchmarks.trainer_step
	$(VENV) -m benchmarks.dry_run
	$(VENV) -m benchmarks.input_pipeline
	$(VENV) -m benchmarks.simulation
	$(VENV) -m benchmarks.probe_cost
	$(VENV) -m benchmarks.gradient_samples
	$(VENV) -m benchmarks.adaptive_softmax
	$(VENV) -m benchmarks.beam_search
	$(VENV) -m benchmarks.sweep

figures: .venv/done
	rm -rf build/figures
	$(VENV) -m trainers.effective_warmup --output_dir=build/figures/warmups
	$(VENV) -m trainers.simulate --output_dir=build/figures/simulation
	$(VENV) -m trainers.evidence $(if $(wildcard docs/results/*/config.json),docs/results) --output_dir=build/figures/evidence \
		--page=docs/results.md --page=docs/analyses.md --page=README.md
	$(VENV) -m trainers.study docs/results docs/study --output_dir=build/figures/study --page=docs/dynamic_warmup.md
	cp build/figures/*/*.svg build/figures/*/*.png build/figures/*/*.pdf docs/figures

docs: .venv/done
	NO_MKDOCS_2_WARNING=1 $(VENV) -m mkdocs --quiet build
	@echo build/site/index.html

notebook: .venv/done
	$(VENV) docs/hooks.py

clean:
	rm -rf .venv .venv-reproduce .venv-addons .venv-keras-* build dist *.egg-info

# torch first and by itself: asked for by version it is the build without CUDA.
.venv/done: setup.py constraints/main.txt
	$(PYTHON) -m venv .venv
	$(VENV) $(PIP) torch==2.13.0 -c constraints/main.txt
	$(VENV) $(PIP) -e '.[docs,test,trainers]' -c constraints/main.txt
	touch $@

.venv-reproduce/done: setup.py constraints/main.txt
	$(PYTHON) -m venv .venv-reproduce
	.venv-reproduce/bin/python $(PIP) -e '.[reproduce]' -c constraints/main.txt
	touch $@

$(VERSIONS:%=.venv-keras-%/done): .venv-keras-%/done: setup.py constraints/keras-%.txt
	$(PYTHON) -m venv .venv-keras-$*
	.venv-keras-$*/bin/python $(PIP) torch==2.13.0 -c constraints/keras-$*.txt
	.venv-keras-$*/bin/python $(PIP) -e . jax jaxlib mpmath pytest pytest-xdist tensorflow -c constraints/keras-$*.txt
	touch $@

.venv-addons/done: setup.py constraints/addons.txt
	$(PYTHON) -m venv .venv-addons
	$(ADDONS) $(PIP) -e '.[addons]' pytest -c constraints/addons.txt
	touch $@
