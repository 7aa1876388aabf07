"""These tests belong to the environment of `make test-addons`; elsewhere there is nothing to collect."""

import importlib.util

if importlib.util.find_spec("tensorflow_addons") is None:
    collect_ignore_glob = ["*.py"]
