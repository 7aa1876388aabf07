"""Trains an image classifier.

python -m trainers.image_classification --flagfile=configs/embedded/digits.flags --output_dir=runs/digits
"""

from trainers.engine.program import run_task

if __name__ == "__main__":
    run_task("image_classification")
