"""Keras layers that Keras does not have; on TensorFlow, as the trainers are."""


class LayerError(ValueError):
    """A layer that cannot be made as asked: the rule, then the value received."""


def require(holds: bool, rule: str, **received: object) -> None:
    """Raises `LayerError` unless `holds`."""
    if not holds:
        raise LayerError(f"{rule}. Received: {', '.join(f'{name}={value}' for name, value in received.items())}")
