"""Layers that Keras does not have. Like the trainers, they need TensorFlow."""
