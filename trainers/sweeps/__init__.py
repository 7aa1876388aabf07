"""Sweeps over learning rate, beta_2, warmup, seed and any other flag: keras-tuner chooses, Ray runs."""
