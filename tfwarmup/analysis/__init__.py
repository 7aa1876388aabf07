"""Observes training without changing it: probes, samples of parameters and gradients, the paper's simulation."""
