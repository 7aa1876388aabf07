"""All experiments of the paper, one after the other, at a size that a laptop can run."""
