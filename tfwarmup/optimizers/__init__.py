"""Adam as defined in the paper, and RAdam as Adam with a fixed warmup."""

from tfwarmup.optimizers.adam import Adam
from tfwarmup.optimizers.radam import RAdam

__all__ = ["Adam", "RAdam"]
