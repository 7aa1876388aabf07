"""What the language model alone has: tied adaptive layers, two orders of normalisation, a softmax with dropout."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainers.engine.layer_state import StatelessSeeds
from trainers.system.errors import ConfigError
from trainers.tasks.language.config import LanguageSizes
from trainers.tasks.language.models import build_language_model

VOCABULARY, CUTOFFS = 60, (10, 30)
SIZES = {"layers": 2, "width": 32, "heads": 4, "inner": 48, "cutoffs": CUTOFFS}
DROPOUTS = {"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1, "softmax_dropout": 0.2}


def small_model(**options):
    return build_language_model(VOCABULARY, LanguageSizes(**SIZES | options))


def batch(*shape):
    words = np.random.default_rng(0).integers(0, VOCABULARY, (*shape[:-1], shape[-1] + 1)).astype("int32")
    return {"tokens": words[..., :-1], "targets": words[..., 1:]}


@pytest.mark.parametrize("normalize_first", [True, False])
def test_blocks_normalise_their_inputs_or_their_outputs(normalize_first, tmp_path):
    keras.utils.set_random_seed(0)
    model = small_model(normalize_first=normalize_first)
    hidden = model.hidden(batch(3, 7)["tokens"])
    is_normalised = np.allclose(np.mean(hidden, axis=-1), 0, atol=1e-5) and np.allclose(
        np.std(hidden, axis=-1), 1, atol=1e-3
    )
    assert is_normalised != normalize_first
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(batch(3, 7)), model(batch(3, 7)))
    assert loaded.softmax.embedding is loaded.embedding


def test_input_and_output_share_their_tables_and_projections():
    model = small_model()
    names = [weight.name for weight in model.weights]
    assert len(names) == len({id(weight) for weight in model.weights})
    assert sorted(name for name in names if name.startswith(("table", "projection", "classes"))) == [
        "classes",
        *(f"{kind}_{band}" for kind in ("projection", "table") for band in range(3)),
    ]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model({"tokens": np.array([[20, 20]]), "targets": np.array([[3, 3]])}))
    gradient = tf.convert_to_tensor(tape.gradient(loss, model.embedding.tables[0].value)).numpy()
    assert np.all(np.any(gradient, axis=1))  # a table that no input reads has the gradient of the output


def test_losses_are_a_function_of_the_seed_and_the_step():
    model = small_model(**DROPOUTS, layers=1)

    def losses(seed, step):
        StatelessSeeds(model, seed, lambda: tf.constant(step, tf.int64)).begin_pass()
        return model(batch(2, 5), training=True).numpy()

    np.testing.assert_array_equal(losses(1, 10), losses(1, 10))
    assert not np.any(np.isclose(losses(1, 10), losses(1, 11)))
    assert not np.any(np.isclose(losses(1, 10), losses(2, 10)))


def test_cutoffs_must_suit_the_vocabulary():
    with pytest.raises(
        ConfigError, match=r"must increase, and lie between 0 and vocabulary_size=60. Received: \(10, 60"
    ):
        small_model(cutoffs=(10, 60))
