"""What looks at training without touching it: probes, samples of parameters and gradients, the paper's simulation."""
