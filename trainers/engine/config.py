"""The flags of all training tasks, by subject. Needs no TensorFlow."""

import dataclasses
from typing import Any, ClassVar

from trainers.engine.flags import Settings, option
from trainers.results.methods import FIRST_STEPS, TUNED_WARMUPS, WARMUPS
from trainers.system.errors import require

STRATEGIES = ("auto", "one", "mirrored", "multiworker")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
MOMENTUM_OPTIMIZERS = ("keras_sgd", "keras_nag")  # gradient descent with heavy-ball or Nesterov momentum
OWN_OPTIMIZERS = ("adam", "radam")  # those of the library
OPTIMIZERS = (*OWN_OPTIMIZERS, "keras_adam", "keras_nadam", "keras_lamb", *MOMENTUM_OPTIMIZERS)
DECAYS = ("constant", "step", "cosine", "inverse_sqrt")
# The decay that each of these flags belongs to.
DECAY_FLAGS = {
    **{"decay_epochs": "step", "decay_factor": "step", "decay_period": "inverse_sqrt"},
    **{"decay_start": "cosine", "decay_floor": "cosine"},
}
SEED_AT_MOST = 2**32 - 1  # for NumPy
DEVICES_AT_MOST, THREADS_AT_MOST, BATCH_AT_MOST = 1024, 1024, 2**31 - 1


def _why_length_matters(config: "Config") -> str:
    """A longer run can continue a shorter one, unless the shorter one depended on its length."""
    if config.decay == "cosine":
        return "--decay=cosine spans the whole run"
    if config.warmup_share is not None:
        return "--warmup_share is a share of the whole run"
    if config.average > 1:
        return "--average takes the last checkpoints of the run"
    return config.fixed_length


def _why_checkpoints_matter(config: "Config") -> str:
    return "--average takes the mean of checkpoints" if config.average > 1 else ""


@dataclasses.dataclass(frozen=True)
class RecordFlags(Settings):
    """What a run keeps, and how often."""

    subject = "Records"

    log_every: int = option(50, "Updates between two records.", low=1, identity=False)
    checkpoint_every: int = option(
        500,
        "Updates between two checkpoints, a multiple of --log_every; 0: every epoch.",
        low=0,
        identity=_why_checkpoints_matter,
    )
    checkpoint_minutes: float = option(
        15.0, "Maximum minutes between two checkpoints; 0: no limit.", low=0, identity=False
    )
    evaluate_every: int = option(1, "Epochs between two validations; the last epoch always has one.", low=1)
    evaluate_steps: int = option(
        0, "Updates between two validations, instead of --evaluate_every; 0: by epochs.", low=0
    )
    save_models: bool = option(True, "Save best.keras and last.keras.", identity=False)
    progress: bool = option(True, "Show a progress bar.", identity=False)
    profile: tuple[int, ...] = option((), "First and last update of a profile for TensorBoard.", low=0, identity=False)

    def validate(self) -> None:
        super().validate()
        ordered = not self.profile or (len(self.profile) == 2 and self.profile[0] < self.profile[1])
        require(ordered, "--profile must be two numbers of updates, the first below the second", self.profile)
        require(
            self.checkpoint_every % self.log_every == 0,
            f"--checkpoint_every must be a multiple of --log_every={self.log_every}",
            self.checkpoint_every,
        )


@dataclasses.dataclass(frozen=True)
class DeviceFlags(Settings):
    """Where a run computes, and in which precision."""

    subject = "Devices"

    strategy: str = option("auto", "Devices; auto uses all visible GPUs, or one device.", STRATEGIES)
    logical_devices: int = option(
        1, "Split the CPU into this many devices, to try replicas without GPUs.", low=1, high=DEVICES_AT_MOST
    )
    precision: str = option("float32", "Precision of the layers.", PRECISIONS)
    threads: int = option(
        0,
        "Threads that an operation may use; 0: one per core. Another number changes the last bits.",
        low=0,
        high=THREADS_AT_MOST,
        identity=False,
    )
    xla: bool = option(False, "Compile the forward and backward pass with XLA.")
    accumulate: int = option(1, "Split the batch of a replica into this many micro-batches, to save memory.", low=1)


@dataclasses.dataclass(frozen=True)
class OptimizerFlags(Settings):
    """The optimizer and its learning rate."""

    subject = "Optimizer"

    optimizer: str = option("adam", "adam and radam are tfwarmup's, the others Keras'.", OPTIMIZERS)
    learning_rate: float = option(1e-3, "Learning rate after the warmup and before the decay.", low=0)
    beta_1: float = option(0.9, "Discount of the first moment.", low=0, below=1)
    beta_2: float = option(
        0.999, "Discount of the second moment; the untuned warmups follow from it.", above=0, below=1
    )
    epsilon: float = option(1e-8, "Epsilon of the optimizer.", low=0)
    momentum: float = option(0.9, "Momentum of --optimizer=keras_sgd and keras_nag.", low=0, below=1)
    weight_decay: float = option(0.0, "Decoupled weight decay.", low=0)
    global_clipnorm: float | None = option(None, "Clip the gradient of the whole batch to this norm.", above=0)
    warmup: str | None = option(
        None,
        "Warmup; radam is RAdam itself. Default: radam for --optimizer=radam, none for keras_sgd and keras_nag, "
        "else untuned_linear.",
        WARMUPS,
    )
    warmup_period: float | None = option(None, "Period of --warmup=linear and exponential, in updates.", above=0)
    warmup_share: float | None = option(
        None, "Instead, the period as a share of the run, such as 0.05.", above=0, high=1
    )
    first_steps: str = option("momentum", "What RAdam does while rho_t <= 4.", FIRST_STEPS)
    gradient_init: bool = option(False, "Start the second moment at the square of the first gradient (GI-Adam).")
    clip_update_rms: bool = option(False, "Lower the rate of variables with unusually large gradients (StableAdamW).")
    decay: str = option("constant", "Decay of the learning rate.", DECAYS)
    decay_epochs: tuple[float, ...] = option(
        (30.0, 60.0), "Epochs after which --decay=step multiplies the rate.", above=0
    )
    decay_factor: float = option(0.1, "Factor by which --decay=step multiplies the rate.", above=0)
    decay_period: float = option(4000.0, "Updates after which --decay=inverse_sqrt begins.", above=0)
    decay_start: int = option(0, "Updates after which --decay=cosine begins; it ends with the run.", low=0)
    decay_floor: float = option(0.0, "Fraction of the learning rate that --decay=cosine ends at.", low=0, below=1)

    def validate(self) -> None:
        super().validate()
        self._validate_warmup()
        self._validate_decay()
        if self.optimizer not in MOMENTUM_OPTIMIZERS:
            self.require_default("momentum", "--optimizer=keras_sgd and keras_nag", self.optimizer)

    def _validate_warmup(self) -> None:
        if self.resolved_warmup in TUNED_WARMUPS:
            period, share = self.warmup_period, self.warmup_share
            require(period or share, f"--warmup={self.warmup} needs --warmup_period or --warmup_share", None)
            rule = "--warmup_period and --warmup_share exclude each other (--warmup_period= takes the period back)"
            require(period is None or share is None, rule, (period, share))
        else:
            for name in ("warmup_period", "warmup_share"):
                self.require_default(name, "--warmup=linear and exponential", self.resolved_warmup)
        require(
            self.optimizer not in MOMENTUM_OPTIMIZERS or self.resolved_warmup in ("none", *TUNED_WARMUPS),
            f"--warmup of --optimizer={self.optimizer}, which has no beta_2, must be none, linear or exponential",
            self.warmup,
        )
        require(
            self.optimizer != "radam" or self.warmup in (None, "radam"),
            "--optimizer=radam has its own warmup: --warmup must be radam or left out",
            self.warmup,
        )
        rule = f"--warmup=dynamic is for --optimizer=adam, not for {self.optimizer}"
        require(self.warmup != "dynamic" or self.optimizer == "adam", rule, self.warmup)
        if self.resolved_warmup != "radam":
            self.require_default("first_steps", "--warmup=radam", self.resolved_warmup)
        if self.optimizer not in OWN_OPTIMIZERS:
            for name in ("gradient_init", "clip_update_rms"):
                self.require_default(name, "--optimizer=adam and radam", self.optimizer)

    def _validate_decay(self) -> None:
        epochs = self.decay_epochs
        if self.decay == "step":
            ordered = epochs and list(epochs) == sorted(set(epochs))
            require(ordered, "--decay_epochs must be numbers, each larger than the one before", epochs)
        for name, decay in DECAY_FLAGS.items():
            if self.decay != decay:
                self.require_default(name, f"--decay={decay}", self.decay)

    def plain(self) -> dict[str, Any]:
        return super().plain() | {"warmup": self.resolved_warmup}

    def period_in(self, updates: int) -> float | None:
        """The period of a tuned warmup in a run of this many updates. It is never rounded."""
        return self.warmup_period if self.warmup_share is None else self.warmup_share * updates

    @property
    def resolved_warmup(self) -> str:
        usual = "none" if self.optimizer in MOMENTUM_OPTIMIZERS else "untuned_linear"
        return self.warmup or ("radam" if self.optimizer == "radam" else usual)


@dataclasses.dataclass(frozen=True)
class Config(OptimizerFlags, DeviceFlags, RecordFlags):
    """The flags of every training task; a task's own config adds its fields."""

    subject = "Training"
    batch_flag: ClassVar[str]  # the field with the size of the global batch, in the unit of the task
    fixed_length: ClassVar[str] = ""  # why a run cannot be extended, for programs that extend none

    seed: int = option(1, "Seed of everything random.", low=0, high=SEED_AT_MOST)
    epochs: int = option(10, "Passes over the training data.", low=1, identity=_why_length_matters)
    steps: int | None = option(
        None, "Total number of updates, instead of --epochs.", low=1, identity=_why_length_matters
    )
    average: int = option(
        1, "At the end, average the weights of this many of the last checkpoints: average.keras.", low=1
    )
    ema: float | None = option(
        None, "Momentum of a moving average of the weights, which is validated and saved.", above=0, below=1
    )
    patience: int | None = option(None, "End the run after this many validations in a row without improvement.", low=1)
    init_from: str | None = option(None, "Start from the weights of a .keras file, or of the run in a folder.")
    evaluate_only: bool = option(
        False, "Train nothing: evaluate the model of --init_from, or else of --output_dir.", identity=False
    )
    dry_run: bool = option(
        False,
        "Write nothing: print the updates and parameters of the run, and its time and memory from a few updates here.",
        identity=False,
    )

    def validate(self) -> None:
        super().validate()
        require(self.ema is None or self.average == 1, "--average and --ema exclude each other", self.ema)

    @property
    def global_batch(self) -> int:
        return int(getattr(self, self.batch_flag))


@dataclasses.dataclass(frozen=True)
class ExamplesConfig(Config):
    """The flags of tasks whose batches are counted in examples."""

    subject = "Training"
    batch_flag: ClassVar[str] = "batch_size"

    batch_size: int = option(
        128, "Global batch: examples per update, over all replicas and micro-batches.", low=1, high=BATCH_AT_MOST
    )
