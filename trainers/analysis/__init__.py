"""The paper's gradient analysis: gradient noise, moments and update sizes during a training run."""
