"""Image classification: digits, CIFAR, ImageNet, or a folder of your own images."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.program import train_task
from trainers.engine.task import Task
from trainers.tasks.images.config import ImageConfig
from trainers.tasks.images.data import ImageData, load_images
from trainers.tasks.images.models import build_model


class ImageClassification(Task):
    """Trains with cross-entropy and reports top-1 error, which the paper reports too, and top-5 error."""

    name = "image_classification"
    config_class = ImageConfig
    objective = "error"
    fractions = ("error", "top5_error")

    def load(self, config: ImageConfig) -> ImageData:
        return load_images(config)

    def build(self, config: ImageConfig, data: ImageData) -> keras.Model:
        options = {"activation": config.activation} if config.model == "mlp" else {}
        return build_model(config.model, data.image_shape, data.classes, data.scaling, **options)

    def loss(self, config: Any, targets: Any, outputs: Any) -> Any:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)

    def metrics(self, config: Any, targets: Any, outputs: Any) -> Mapping[str, Any]:
        wrong = {k: 1 - tf.cast(tf.math.in_top_k(targets, outputs, k), tf.float32) for k in (1, 5)}
        return {"error": wrong[1], "top5_error": wrong[5]}


def train_images(config: ImageConfig) -> str:
    """Trains a classifier, and returns the results."""
    return train_task(ImageClassification(), config)
