"""Adam as the paper writes it, and RAdam as the paper reads it."""

from tfwarmup.optimizers.adam import Adam
from tfwarmup.optimizers.radam import RAdam

__all__ = ["Adam", "RAdam"]
