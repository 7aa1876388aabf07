"""Private names of Keras are used in `tfwarmup.compat` alone, and versions that do not work are refused."""

import ast
import functools
import importlib
import inspect
import pathlib
import re
import subprocess
import sys

import keras
import pytest
from packaging.specifiers import SpecifierSet

import tfwarmup
from tests.tfwarmup.helpers import number
from tfwarmup import compat

PACKAGE = pathlib.Path(tfwarmup.__file__).parent
SOURCES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "compat.py"
}
OF_LATER_VERSIONS = {"_iterations"}  # which an optimizer has from Keras 3.5 on
OWN = {"_momentums", "_velocities"}  # attributes of this package's Adam, and of Keras' Adam
OTHER_LIBRARIES = {"jax", "np", "tf", "torch"}


@functools.cache
def private_names_of_keras():
    """Private names of the objects that the library works with, from Keras' source."""
    optimizers = compat.built_in_optimizers("Adam", "Lamb", "LossScaleOptimizer", "Muon", "MultiOptimizer", "Nadam")
    classes = (keras.Model, keras.Variable, keras.callbacks.Callback, *optimizers)
    bases = {base for cls in classes for base in cls.__mro__ if base.__module__.startswith("keras.")}
    names = {name for base in bases for name in vars(base)} | OF_LATER_VERSIONS
    names |= set(re.findall(r"self\.(_\w+)", "".join(map(inspect.getsource, bases))))
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def private_uses(source, derived):
    """The private names of Keras that a module reads, sets, defines or asks for; `derived`: its classes from Keras."""
    for top in ast.parse(source).body:
        inherits = isinstance(top, ast.ClassDef) and top.name in derived
        for node in ast.walk(top):
            names, owner = [], None
            if isinstance(node, ast.Attribute):
                names, owner = [node.attr], getattr(node.value, "id", None)
            elif isinstance(node, ast.FunctionDef):
                names, owner = [node.name], "self"
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr", "setattr"):
                names = [str(getattr(node.args[1], "value", ""))]
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            is_own = owner in OTHER_LIBRARIES or (owner == "self" and (not inherits or OWN.issuperset(names)))
            for name in names:
                if name.startswith("keras.src") or (owner, name) == ("keras", "src"):
                    yield "keras.src"
                elif name in private_names_of_keras() and not is_own:
                    yield name


def derived_from_keras(module):
    classes = [cls for cls in vars(module).values() if inspect.isclass(cls)]
    return {cls.__name__ for cls in classes if any(base.__module__.startswith("keras.") for base in cls.__mro__)}


@pytest.mark.parametrize("name", SOURCES)
def test_no_other_module_uses_a_private_name_of_keras(name):
    assert list(private_uses(SOURCES[name], derived_from_keras(importlib.import_module(name)))) == []


@pytest.mark.once
@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("rate = optimizer._learning_rate", ["_learning_rate"]),
        ("optimizer.inner_optimizer._iterations.assign(3)", ["_iterations"]),
        ("getattr(optimizer, '_learning_rate', None)", ["_learning_rate"]),
        ("all(layer.built for layer in model._flatten_layers())", ["_flatten_layers"]),
        ("m = optimizer._momentums", ["_momentums"]),  # which this package's Adam has too
        ("from keras.src import optimizers", ["keras.src"]),
        ("keras.src.optimizers.base_optimizer", ["keras.src"]),
        ("class Sample:\n  def f(self):\n    return self._iterations", ["_iterations"]),
        ("class Sample:\n  def _backend_update_step(self):\n    pass", ["_backend_update_step"]),
        ("class Sample:\n  def f(self):\n    super()._apply_weight_decay([])", ["_apply_weight_decay"]),
        ("s._replace(decay=None), self._betas, torch._fused_adam_, tf.x._y, self._momentums, self.iterations", []),
    ],
)
def test_the_search_finds_private_names_and_only_those(source, found):
    assert list(private_uses(source, {"Sample"})) == found


WORKING = ["2.15.0", "3.3.0", "3.3.3", "3.4.1", "3.9.2", "3.10.0", "3.15.1", "3.16.0"]
REFUSED = ["2.14.0", "2.2.5", "3.0.5", "3.1.1", "3.2.1", "4.0.0"]


@pytest.mark.once
def test_versions_that_work_are_accepted_and_others_refused_with_those_that_work():
    for version in (*WORKING, "3.16.0.dev2027010101"):
        compat.check_version(version)
    rule = "tfwarmup needs Keras 3.3 or newer, or Keras 2.15 for the schedules with tensorflow-addons"
    for version in (*REFUSED, "nightly"):
        with pytest.raises(ImportError, match=f"^{re.escape(f'{rule}. Received: Keras {version}')}$"):
            compat.check_version(version)


@pytest.mark.once
def test_import_itself_refuses_an_old_keras():
    code = "import keras; keras.__version__ = '3.2.1'; import tfwarmup"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=PACKAGE.parent)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("ImportError: tfwarmup needs Keras 3.3 or newer")
    assert run.stderr.splitlines()[-1].endswith("Received: Keras 3.2.1")


@pytest.mark.once
def test_the_requirement_of_the_package_admits_what_import_admits():
    requirement = re.search(r'"keras([^"a-z]+)"', (PACKAGE.parent / "setup.py").read_text())[1]
    assert list(SpecifierSet(requirement).filter([*WORKING, *REFUSED])) == WORKING


def test_a_loss_of_the_users_own_without_an_argument_for_training_works():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return keras.ops.sum(y_pred - y) + 5.0

    model = Own()
    model.compile("sgd", loss="mse")
    x = keras.ops.ones((2, 3))
    assert not compat.weights_exist(model)
    output = compat.training_output(model, x)
    assert compat.weights_exist(model)
    assert number(compat.training_loss(model, x, output, output, None)) == 5.0


@pytest.mark.parametrize("condition", [True, False])
def test_only_the_chosen_function_is_called_where_the_condition_is_known(condition):
    """`keras.ops.cond` calls, and compiles, both of them on JAX at every update of a loop that is not compiled."""
    called = []

    def branch(name):
        called.append(name)
        return keras.ops.ones(())

    compat.chosen(keras.ops.convert_to_tensor(condition), lambda: branch(True), lambda: branch(False))
    assert called == [condition]
