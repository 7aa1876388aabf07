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
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
OF_LATER_VERSIONS = {"_iterations"}  # which an optimizer has from Keras 3.5 on
OTHER_LIBRARIES = {"jax", "np", "tf", "torch"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def names_of_keras(*classes):
    """Private names that Keras gives to the objects of these classes, from its source."""
    later = OF_LATER_VERSIONS if any(issubclass(cls, keras.optimizers.Optimizer) for cls in classes) else set()
    bases = {base for cls in classes for base in cls.__mro__ if base.__module__.startswith("keras.")}
    names = later | {name for base in bases for name in vars(base)}
    names |= set(re.findall(r"self\.(_\w+)", "".join(map(inspect.getsource, bases))))
    return {name for name in names if is_private(name)}


@functools.cache
def all_names_of_keras():
    optimizers = compat.built_in_optimizers("Adam", "Lamb", "LossScaleOptimizer", "Muon", "MultiOptimizer", "Nadam")
    return names_of_keras(keras.Model, keras.Variable, keras.callbacks.Callback, *optimizers)


@functools.cache
def own_names():
    """Private names that this package itself gives, to functions, classes and attributes."""
    names = set()
    for source in SOURCES.values():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return names


def is_foreign(name):
    """Whether a private name is Keras' or, at least, not this package's own."""
    return is_private(name) and (name in all_names_of_keras() or name not in own_names() | OF_NAMED_TUPLES)


def used_names(tree):
    """(owner, name, line) of all that is read, set, defined or asked for by name; the owner is a name or None."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield root(node), node.attr, node.lineno
        elif isinstance(node, ast.FunctionDef):
            yield "self", node.name, node.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr", "setattr"):
            # A name that is computed is none that anybody wrote down.
            yield root(node.args[0]), str(getattr(node.args[1], "value", "")), node.lineno


def root(node):
    """What an expression begins with: "torch" for `torch.optim.x`; "self" and "super" for their own attributes only."""
    inner = node.value if isinstance(node, ast.Attribute) else node
    if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "super":
        return "self"
    if isinstance(inner, ast.Name):
        return inner.id
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) and inner.id in OTHER_LIBRARIES else None


def private_uses(source, module):
    """Lines of a module that use a private name of Keras, with the name."""
    tree = ast.parse(source)
    uses = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            places = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            uses |= {(node.lineno, place) for place in places if place.startswith("keras.src")}
    for owner, name, line in used_names(tree):
        if owner == "keras" and name == "src":
            uses.add((line, "keras.src"))
        elif owner not in {"self", "cls", *OTHER_LIBRARIES} and is_foreign(name):
            uses.add((line, name))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            inherited = names_of_keras(getattr(module, node.name))
            uses |= {(line, n) for owner, n, line in used_names(node) if owner in ("self", "cls") and n in inherited}
    return sorted(uses)


@pytest.mark.parametrize("name", SOURCES)
def test_no_other_module_uses_a_private_name_of_keras(name):
    assert private_uses(SOURCES[name], importlib.import_module(name)) == []


class Sample(keras.optimizers.Adam):
    """Stands for an optimizer of the package, in the sources below."""


@pytest.mark.once
@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("rate = optimizer._learning_rate", ["_learning_rate"]),
        ("optimizer.inner_optimizer._iterations.assign(3)", ["_iterations"]),
        ("optimizer._all_reduce_sum_gradients = lambda pairs: pairs", ["_all_reduce_sum_gradients"]),
        ("getattr(optimizer, '_learning_rate', None)", ["_learning_rate"]),
        ("all(layer.built for layer in model._flatten_layers())", ["_flatten_layers"]),
        ("m = optimizer._momentums", ["_momentums"]),  # which this package's Adam has too
        ("from keras.src import optimizers", ["keras.src"]),
        ("keras.src.optimizers.base_optimizer", ["keras.src"]),
        ("class Sample:\n  def f(self):\n    return self._iterations", ["_iterations"]),
        ("class Sample:\n  def _backend_update_step(self):\n    pass", ["_backend_update_step"]),
        ("class Sample:\n  def f(self):\n    super()._apply_weight_decay([])", ["_apply_weight_decay"]),
        ("scalars._replace(decay=None), optimizer._betas, torch._fused_adam_, tf.x._y, self.iterations", []),
        ("class Sample:\n  def f(self):\n    self._betas = super().build(self.__class__)", []),
    ],
)
def test_the_search_finds_private_names_and_only_those(source, found):
    assert [name for _, name in private_uses(source, sys.modules[__name__])] == found


WORKING = ["2.15.0", "3.3.0", "3.3.3", "3.4.1", "3.9.2", "3.10.0", "3.15.1", "3.16.0"]
REFUSED = ["2.14.0", "2.2.5", "3.0.5", "3.1.1", "3.2.1", "4.0.0"]


@pytest.mark.once
@pytest.mark.parametrize("version", [*WORKING, "3.16.0.dev2027010101"])
def test_a_version_that_works_is_accepted(version):
    compat.check_version(version)


@pytest.mark.once
@pytest.mark.parametrize("version", [*REFUSED, "nightly"])
def test_another_version_is_refused_with_those_that_work(version):
    rule = "tfwarmup needs Keras 3.3 or newer, or Keras 2.15 for the schedules with tensorflow-addons"
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


def test_updates_are_counted_and_not_micro_batches():
    variable = keras.Variable([0.0])
    for optimizer in (
        tfwarmup.Adam(gradient_accumulation_steps=3),
        keras.optimizers.Adam(gradient_accumulation_steps=3),
    ):
        for _ in range(7):
            optimizer.apply([keras.ops.ones(1)], [variable])
        assert number(compat.step_counter(optimizer)) == 7
        assert compat.updates_made(optimizer) == 2


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
