"""Layers that Keras does not have. Like the trainers, they need TensorFlow."""


class LayerError(ValueError):
    """Invalid arguments of a layer. The message has the rule, then the value received."""


def require(holds: bool, rule: str, **received: object) -> None:
    """Raises `LayerError` unless `holds`."""
    if not holds:
        raise LayerError(f"{rule}. Received: {', '.join(f'{name}={value}' for name, value in received.items())}")
