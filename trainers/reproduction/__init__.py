"""All experiments of the paper, one after the other, at the size of a laptop."""
