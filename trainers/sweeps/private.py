"""Every private name of keras-tuner and Ray that the sweeps use, so that a new version breaks only this module."""

from typing import Any


def without_files(kind: type[Any]) -> type[Any]:
    """A subclass of an oracle that writes no files: the results of the trials record what has been done."""
    nothing = {"save": lambda self: None, "_save_trial": lambda self, trial: None}
    return type(kind.__name__, (kind,), nothing)


def keep_ray_silent() -> None:
    """Keeps Ray from printing a paragraph on standard output for every worker that dies. Its logs have it."""
    import ray._private.worker

    ray._private.worker._worker_logs_enabled = False


def refresh_ray() -> None:
    """Makes Ray read the environment again: this process may have imported it before with another one."""
    from ray._private import ray_constants
    from ray._raylet import AuthenticationTokenLoader, Config  # type: ignore[attr-defined]

    ray_constants.ENABLE_RAY_CLUSTER = ray_constants.env_bool(ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, True)
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
