# make reproduce      the experiments of the paper at the size of a laptop, and a page of them
# make test           the tests, on TensorFlow, JAX and torch
# make test-versions  the tests of the library on Keras 3.3, 3.6, 3.9 and the newest
# make test-oldest    the same on Keras 3.3 alone
# make test-addons    the tests that need TensorFlow 2.15 and tensorflow-addons
# make test-slow      the tests that take minutes: full-size models, the embedded results
# make test-wheel     the wheel alone, in an empty environment for each backend
# make lint           the linter and the type checker
# make bench          milliseconds and ratios
# make figures        the pictures of README and docs

PYTHON ?= python3
BACKENDS = tensorflow jax torch
VENV = .venv/bin/python
ADDONS = .venv-addons/bin/python
# Slow tests whose processes need one core each, and little memory.
LIGHT = tests/test_commands.py $(addprefix tests/trainers/test_,reproduce.py resume.py stopping.py multiworker.py)
PIP = -m pip --quiet --disable-pip-version-check install
# Versions of Keras besides the one in constraints/main.txt; each has constraints with the TensorFlow of its time.
VERSIONS = 3.3 3.6 3.9
OLDEST = $(firstword $(VERSIONS))
# The tests of the library. The simulation is numpy alone, and tuning needs keras-tuner: the newest Keras is enough.
LIBRARY = tests/tfwarmup tfwarmup $(addprefix --ignore=tests/tfwarmup/,test_addons.py test_tuning.py analysis/test_simulation.py)

.PHONY: reproduce test test-versions test-oldest $(VERSIONS:%=test-keras-%) test-addons test-slow test-wheel lint bench figures clean

reproduce: .venv/done
	$(VENV) -m trainers.reproduce

test: .venv/done
	set -e; for backend in $(BACKENDS); do \
		echo "== $$backend"; KERAS_BACKEND=$$backend $(VENV) -m pytest -q -n 2; done

test-versions: .venv/done $(VERSIONS:%=test-keras-%)
	$(VENV) -m pytest -q -n 2 $(LIBRARY)

test-oldest: test-keras-$(OLDEST)

$(VERSIONS:%=test-keras-%): test-keras-%: .venv-keras-%/done
	.venv-keras-$*/bin/python -m pytest -q -n 2 $(LIBRARY)

test-addons: .venv/done .venv-addons/done
	$(ADDONS) -m pytest -q tests/addons tfwarmup/factors.py
	$(VENV) -m pytest -q -m addons

test-slow: .venv/done
	$(VENV) -m pytest -q -m slow -n 2 $(LIGHT)
	$(VENV) -m pytest -q -m slow $(addprefix --ignore=,$(LIGHT))

test-wheel: .venv/done
	rm -rf build dist
	$(VENV) -m build --wheel --outdir dist . > /dev/null
	set -e; for backend in $(BACKENDS); do PYTHON=$(PYTHON) tests/wheel/try $$backend dist/*.whl; done

lint: .venv/done
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy

bench: .venv/done
	$(VENV) -m benchmarks.import_time
	$(VENV) -m benchmarks.schedule_cost
	$(VENV) -m benchmarks.optimizer_step
	$(VENV) -m benchmarks.trainer_step
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
	$(VENV) -m trainers.gradient_analysis --flagfile=configs/embedded/gradient_analysis.flags \
		--output_dir=build/figures/analysis
	cp build/figures/*/*.svg build/figures/*/*.png docs/figures

clean:
	rm -rf .venv .venv-addons .venv-keras-* build dist *.egg-info

# torch first and by itself: asked for by version it is the build without CUDA.
.venv/done: setup.py constraints/main.txt
	$(PYTHON) -m venv .venv
	$(VENV) $(PIP) torch==2.13.0 -c constraints/main.txt
	$(VENV) $(PIP) -e '.[test,trainers]' -c constraints/main.txt
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
