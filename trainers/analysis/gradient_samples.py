"""A sample of the gradient's distribution: k gradients from k batches at the same weights, at a few parameters.

An example's gradient does not depend on the batch it is in. Where the batches draw each example several times, its
activations and back-propagated errors are computed once, and a batch's gradient at one weight is the mean of
activation times error over its examples. Otherwise there is nothing to share, and the batches take their
backward passes one after the other in one graph.
"""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfwarmup.analysis.samples import ParameterSample
from trainers.engine.data import ArraySource, Feed, Source

# Sharing costs the work of about four backward passes over every example of the data set.
SHARING_FACTOR = 4


class GradientSamples:
    """Draws `count` independent batches at a time and returns their gradients at the sampled weights.

    Args:
        model: A chain of dense layers that ends in logits.
        sample: The sampled weights, from the kernels of the dense layers.
        source: The source of the batches, which come in the engine's order but with another seed.
        batch_size: Examples per batch.
        count: Gradients per sample.
        seed: The run's seed.
        share: Whether to compute each example only once; by default, if that is faster.
    """

    def __init__(
        self,
        model: keras.Model,
        sample: ParameterSample,
        source: Source,
        batch_size: int,
        count: int,
        seed: int,
        share: bool | None = None,
    ) -> None:
        self.model, self.sample, self.source, self.batch_size, self.count = model, sample, source, batch_size, count
        self.seed = -1 - seed  # negative, unlike the seed of any run
        in_memory = isinstance(source, ArraySource) and source.augment is None
        self.shared = in_memory and SHARING_FACTOR * source.size <= count * batch_size if share is None else share
        self._layers = [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)]
        self._batches: Any = None
        if self.shared:
            self._prepare_sharing()

    def draw(self, number: int) -> np.ndarray:
        """Draws the sample with this number, an array [count, parameters]. Later numbers must be consecutive."""
        if self._batches is None:
            feed = Feed(self.batch_size, self.seed, start_step=number * self.count)
            self._batches = iter(self._orders(feed) if self.shared else self.source.training(feed))
        gradients = self._together(next(self._batches)) if self.shared else self._one_by_one(self._batches)
        return np.asarray(gradients)

    def _orders(self, feed: Feed) -> tf.data.Dataset:
        """The indices of a sample's batches, [count, batch_size]."""
        order = self.source.order(feed)  # type: ignore[attr-defined]
        return order.map(lambda indices, *_: indices).batch(self.count).prefetch(1)

    @tf.function
    def _one_by_one(self, batches: Any) -> Any:
        gradients = tf.TensorArray(tf.float32, self.count, element_shape=[len(self.sample)])
        kernels = [layer.kernel for layer in self._layers]
        for number in tf.range(self.count):
            images, labels, _ = next(batches)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(_losses(labels, self.model(images, training=True)))
            of_batch = self.sample.take(tape.gradient(loss, [kernel.value for kernel in kernels]))
            gradients = gradients.write(number, of_batch)
        return gradients.stack()

    def _prepare_sharing(self) -> None:
        size = self.source.size
        images, labels, _ = next(iter(self.source.evaluation(Feed(size))))
        self._labels = labels
        # The inputs of the first dense layer: scaled, one row per image.
        self._images = keras.Model(self.model.input, self._layers[0].input)(images)
        shapes = [layer.kernel.shape for layer in self._layers]
        self._places = [np.divmod(index, shape[1]) for index, shape in zip(self.sample.indices, shapes, strict=True)]
        # The first layer's activations are the images, and do not change.
        self._pixels = tf.gather(tf.transpose(self._images), self._places[0][0])

    @tf.function
    def _together(self, indices: Any) -> Any:
        # Transposed, with one column per example: selecting units then copies whole rows.
        activations, errors = self._backpropagated()
        inputs = [self._pixels] + [
            tf.gather(tf.transpose(x), rows) for x, (rows, _) in zip(activations[1:], self._places[1:], strict=True)
        ]
        outputs = [tf.gather(tf.transpose(e), columns) for e, (_, columns) in zip(errors, self._places, strict=True)]
        of_examples = tf.concat([x * e for x, e in zip(inputs, outputs, strict=True)], axis=0)
        size = self.source.size
        # How often each batch contains each example: [count, examples].
        counts = tf.math.bincount(indices, minlength=size, maxlength=size, dtype=tf.float32, axis=-1)
        return tf.matmul(counts, of_examples, transpose_b=True) / self.batch_size

    def _backpropagated(self) -> tuple[list[Any], list[Any]]:
        """The input of every dense layer, and the error at its output before the activation function."""
        inputs, outputs, x = [], [], self._images
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            for layer in self._layers:
                inputs.append(x)
                outputs.append(tf.matmul(x, layer.kernel) + layer.bias)
                tape.watch(outputs[-1])
                x = layer.activation(outputs[-1])
            loss = tf.reduce_sum(_losses(self._labels, x))
        return inputs, tape.gradient(loss, outputs)


def _losses(labels: Any, logits: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
