"""What runs and sweeps leave on disk, and what is known of methods and tasks. Needs no TensorFlow."""
