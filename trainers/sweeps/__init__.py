"""What a sweep over learning rate, beta_2, warmup and seed leads to: runs, the table, the comparison."""
