"""One page for the runs of a folder: the paper's figures, tables and claims with the numbers measured."""
