"""Whether methods differ by enough to matter: margins, equivalence tests, verdicts. Needs no TensorFlow."""
