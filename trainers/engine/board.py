"""The names under which TensorBoard shows the values of a run, grouped by what they are about."""

OPTIMIZER = ("learning_rate", "warmup_factor", "gradient_norm", "loss_scale", "skipped_updates")
# What the probes of a gradient analysis measure.
PROBED = ("update_", "moment_", "gradient_cv_")
# Names in records of older versions, so that a resumed run shows one curve, not two.
FORMER_NAMES = {"omega": "warmup_factor"}


def board_tag(name: str) -> str:
    """The tag of a value of the records.

    >>> [board_tag(name) for name in ("loss", "val_error", "learning_rate", "update_median")]
    ['train/loss', 'val/error', 'optimizer/learning_rate', 'optimizer/update_median']
    """
    name = FORMER_NAMES.get(name, name)
    if name.startswith("val_"):
        return f"val/{name.removeprefix('val_')}"
    group = "optimizer" if name in OPTIMIZER or name.startswith(PROBED) else "train"
    return f"{group}/{name}"
