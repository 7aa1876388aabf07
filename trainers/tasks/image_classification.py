"""Images into classes: digits, CIFAR, ImageNet, or a folder of one's own."""

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from trainers.engine.config import BY_CONTENT, ConfigError, ExamplesConfig, option
from trainers.engine.task import Data, Task
from trainers.tasks.image_data import load_images
from trainers.tasks.image_models import MODELS, ModelError, build_model


@dataclasses.dataclass(frozen=True)
class ImageConfig(ExamplesConfig):
    """The fields of every config, and those of images."""

    dataset: str = option("digits", "digits (embedded), folder (with --data_dir), or the name of a TFDS image set.")
    data_dir: str | None = option(None, "Folder of images, of idx files, or of TFDS data.", identity=BY_CONTENT)
    image_size: int | None = option(None, "Pixels that photographs are cropped to.")
    download: bool = option(False, "Download a TFDS set that is not on disk.", identity=False)
    bad_images: str = option("fail", "What to do about truncated image files.", ("fail", "skip"))
    model: str = option("mlp", "Network.", tuple(MODELS))


class ImageClassification(Task):
    """Cross-entropy; top-1 and top-5 error, the paper's number being the first."""

    name = "image_classification"
    config_class = ImageConfig
    metric_names = ("error", "top5_error")
    objective = "error"

    def load(self, config: ImageConfig) -> Data:
        images = load_images(config.dataset, config.data_dir, config.image_size, config.download, config.bad_images)
        if images.skipped:
            logging.warning("left out %d truncated images: %s", len(images.skipped), ", ".join(images.skipped))
        return Data(images.train, images.validation, images)

    def build(self, config: ImageConfig, data: Data) -> keras.Model:
        try:
            return build_model(config.model, data.details.image_shape, data.details.classes)
        except ModelError as error:
            raise ConfigError(str(error)) from error

    def loss(self, config: Any, targets: Any, outputs: Any) -> Any:
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)

    def metrics(self, targets: Any, outputs: Any) -> Mapping[str, Any]:
        wrong = {k: 1 - tf.cast(tf.math.in_top_k(targets, outputs, k), tf.float32) for k in (1, 5)}
        return {"error": wrong[1], "top5_error": wrong[5]}
