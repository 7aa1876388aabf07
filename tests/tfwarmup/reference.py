"""The paper's equations 2 to 11 in float64 numpy, word for word: what the optimizers are held against."""

import numpy as np


def adam(
    gradients, theta, alpha=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-7, omega=lambda t: 1.0, weight_decay=0.0,
    gradient_init=False, clip_update_rms=False,
):  # fmt: skip
    """Yields theta after each update; `omega` is the warmup, and multiplies the decoupled weight decay too.

    GI-Adam begins with v_0 = g_1^2; StableAdamW divides the rate by the RMS of g / sqrt(v_hat), where that is above 1.
    """
    theta, m, v = np.float64(theta), 0.0, np.float64(gradients[0]) ** 2 if gradient_init else 0.0
    for t, gradient in enumerate(gradients, start=1):
        gradient = np.float64(gradient)
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        update = (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
        excess = max(1.0, np.sqrt(np.mean(gradient**2 / (v / (1 - beta_2**t))))) if clip_update_rms else 1.0
        theta = theta - alpha / excess * omega(t) * (update + weight_decay * theta)
        yield theta


def radam(
    gradients, theta, alpha=1e-3, beta_1=0.9, beta_2=0.999, epsilon=1e-7, threshold=4.0, first_steps="momentum",
    weight_decay=0.0,
):  # fmt: skip
    """Yields theta after each update of RAdam, with the four first-step rules of the paper's ablation."""
    theta, m, v = np.float64(theta), 0.0, 0.0
    omega_after = radam_omega(next(t for t in range(1, 1000) if rho(t, beta_2) > threshold), beta_2)
    steps = next(t for t in range(1, 1000) if rho(t, beta_2) > threshold) - 1
    for t, gradient in enumerate(gradients, start=1):
        gradient = np.float64(gradient)
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        m_hat = m / (1 - beta_1**t)
        adam_update = m_hat / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
        if rho(t, beta_2) > threshold:
            update = radam_omega(t, beta_2) * adam_update
        else:
            update = {
                "momentum": m_hat,
                "nothing": 0.0,
                "constant_adam": omega_after * adam_update,
                "linear_adam": omega_after * t / (steps + 1) * adam_update,
            }[first_steps]
        theta = theta - alpha * (update + weight_decay * theta)
        yield theta


def rho(t, beta_2):
    return 2 / (1 - beta_2) - 1 - 2 * t * beta_2**t / (1 - beta_2**t)


def radam_omega(t, beta_2):
    rho_inf, rho_t = 2 / (1 - beta_2) - 1, rho(t, beta_2)
    return np.sqrt((rho_t - 4) * (rho_t - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho_t))
