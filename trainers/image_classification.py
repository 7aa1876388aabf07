"""Trains an image classifier.

python -m trainers.image_classification --flagfile=configs/embedded/digits.flags --output_dir=runs/digits
"""

from trainers.engine.program import imported_late, run_program
from trainers.tasks.images.config import ImageConfig

if __name__ == "__main__":
    run_program(ImageConfig, imported_late("trainers.tasks.images.task", "train_images"))
