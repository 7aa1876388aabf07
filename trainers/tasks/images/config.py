"""The flags of image classification. Needs no TensorFlow."""

import dataclasses
import math

from trainers.engine.config import ExamplesConfig
from trainers.engine.flags import BY_CONTENT, Flags, option
from trainers.system.errors import require

MODELS = ("mlp", "small_resnet", "resnet50")
BAD_IMAGES = ("fail", "skip")
ACTIVATIONS = ("relu", "tanh")


@dataclasses.dataclass(frozen=True)
class ImageFlags(Flags):
    """The flags that select and prepare the images."""

    subject = "Images"

    dataset: str = option("digits", "digits (embedded), folder (with --data_dir), or the name of a TFDS image set.")
    data_dir: str | None = option(None, "Folder of images, of idx files, or of TFDS data.", identity=BY_CONTENT)
    image_size: int | None = option(None, "Height and width that photographs are cropped to, in pixels.", low=1)
    download: bool = option(False, "Download a TFDS set that is not on disk.", identity=False)
    bad_images: str = option("fail", "What to do with image files that cannot be decoded.", BAD_IMAGES)
    standardize: bool = option(False, "Standardise grey images by the mean and deviation of the training pixels.")
    standardize_by: tuple[float, ...] = option(
        (), "Mean and deviation of pixels in [0, 1] for --standardize, instead of those of the training pixels."
    )
    cache_dir: str | None = option(
        None, "Folder for cached facts about the image files; .tfwarmup in --data_dir if left out.", identity=False
    )

    def validate(self) -> None:
        super().validate()
        if self.dataset == "digits":
            self.require_default("data_dir", "data on disk", "--dataset=digits")
        if not self.standardize_by:
            return
        require(self.standardize, "--standardize_by needs --standardize", self.standardize_by)
        rule = "--standardize_by must be a mean and a deviation > 0, both numbers"
        finite = all(math.isfinite(value) for value in self.standardize_by)
        require(len(self.standardize_by) == 2 and finite and self.standardize_by[1] > 0, rule, self.standardize_by)


@dataclasses.dataclass(frozen=True)
class ImageConfig(ImageFlags, ExamplesConfig):
    """The flags of image classification: those of every run, of the images and of the model."""

    subject = "Model"

    model: str = option("mlp", "Network.", MODELS)
    activation: str = option("relu", "Activation of the hidden units of --model=mlp.", ACTIVATIONS)

    def validate(self) -> None:
        super().validate()
        if self.model != "mlp":
            self.require_default("activation", "--model=mlp", self.model)
