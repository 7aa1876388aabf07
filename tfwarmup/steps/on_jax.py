"""The part of the step that is specific to JAX."""

from typing import Any

from tfwarmup.compat import ops


def dense(gradient: Any, variable: Any) -> Any:
    """A sparse gradient (of an embedding) as a dense one."""
    return None if gradient is None else ops.convert_to_tensor(gradient, sparse=False)
