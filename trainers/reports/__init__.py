"""An HTML report on the runs of a folder: the paper's figures, tables and claims with the measured numbers."""
