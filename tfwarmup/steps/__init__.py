"""One update of the variables, theta -= rate * m / (sqrt(v) + epsilon), in one kernel if the backend has one.

Rate and epsilon are those of `tfwarmup.formula`: the same update serves Adam, any warmup, and momentum.

`step` updates one variable. `step_together` updates a list of variables in one call; it is `None` on backends that gain
nothing from it. `on_host` reads numbers from the device if updates run eagerly; it is `None` if they are compiled.
`not_compiled` keeps a function out of `torch.compile`. `dense` makes a sparse gradient dense. `update_excess` measures
how much larger than usual a gradient is.
"""

from typing import Any

import keras

from tfwarmup.steps.clipping import update_excess
from tfwarmup.steps.plain import Betas, Scalars, dense, plain_step, rounded_betas

__all__ = [
    "Betas",
    "Scalars",
    "dense",
    "not_compiled",
    "on_host",
    "plain_step",
    "rounded_betas",
    "step",
    "step_together",
    "update_excess",
]

step: Any
step_together: Any = None
on_host: Any = None


def not_compiled(function: Any) -> Any:
    return function


if keras.backend.backend() == "tensorflow":
    from tfwarmup.steps.on_tensorflow import dense, step
elif keras.backend.backend() == "torch":
    from tfwarmup.steps.on_torch import dense, not_compiled, on_host, step, step_together, update_excess
else:
    # XLA compiles it to three loops, like any other Adam; a hand-written kernel would gain nothing.
    step = plain_step
