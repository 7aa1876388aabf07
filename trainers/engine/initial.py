"""Initial weights, from another run or a file."""

import pathlib
from typing import Any

import keras

from trainers.engine.flags import ConfigError

# In a run's folder, the first of these that exists is used.
MODELS = ("average.keras", "best.keras", "last.keras")


def model_file(place: str, flag: str) -> pathlib.Path:
    """The .keras file that a flag names, or the best model in the folder that it names."""
    path = pathlib.Path(place)
    found = [path / name for name in MODELS if (path / name).is_file()] if path.is_dir() else [path]
    if not found or not found[0].is_file():
        raise ConfigError(f"{flag} must be a .keras file or the folder of a run that has one. Received: {place!r}")
    return found[0]


def load_weights(model: keras.Model, path: pathlib.Path, flag: str) -> None:
    """Loads the weights of a saved model, which must have the same shapes."""
    try:
        stored: Any = keras.models.load_model(path, compile=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{flag} must be a model that Keras can load. Received: {path} ({reason})") from error
    theirs, ours = stored.weights, model.weights
    if len(theirs) != len(ours):
        raise ConfigError(f"{flag} must have the model's {len(ours)} weights. Received: {path} with {len(theirs)}")
    for given, own in zip(theirs, ours, strict=True):
        if given.shape != own.shape:
            raise ConfigError(
                f"{flag} must have weights of the model's shapes, {own.path} of {tuple(own.shape)}. "
                f"Received: {path} with {given.path} of {tuple(given.shape)}"
            )
    for given, own in zip(theirs, ours, strict=True):
        own.assign(given.numpy())
