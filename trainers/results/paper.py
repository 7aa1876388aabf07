"""What the paper reports: its three tables, and the scale of its experiments."""

import dataclasses

AUTHORS = "Ma and Yarats, On the Adequacy of Untuned Warmup for Adaptive Optimization (AAAI 2021)"


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """Mean and standard deviation over seeds for each learning rate and beta_2, and each method of `sweeps.cells`."""

    title: str
    scale: str
    unit: str
    seeds: int
    rows: tuple[tuple[float, float, tuple[tuple[float, float], ...]], ...]


def _rows(text: str) -> tuple[tuple[float, float, tuple[tuple[float, float], ...]], ...]:
    """Parses lines with the learning rate, beta_2, and the mean and standard deviation of each method."""
    lines = [[float(number) for number in line.split()] for line in text.strip().splitlines()]
    return tuple((rate, beta_2, tuple(zip(cells[::2], cells[1::2], strict=True))) for rate, beta_2, *cells in lines)


TABLES = {
    "image_classification": PaperTable(
        "Top-1 error of ResNet-50 on ImageNet, %",
        "ResNet-50 on ImageNet (1.28 million photographs, 1000 classes), 90 epochs, batches of 1024, 5 seeds, on eight "
        "V100 GPUs",
        "%",
        5,
        _rows("""
            1e-4 0.99  34.2 0.1  34.2 0.1  34.2 0.1
            1e-4 0.997 34.3 0.2  34.2 0.2  34.1 0.1
            1e-4 0.999 34.5 0.1  34.4 0.1  34.2 0.3
            1e-3 0.99  27.9 0.1  28.0 0.1  28.4 0.1
            1e-3 0.997 27.9 0.1  27.9 0.1  28.3 0.1
            1e-3 0.999 28.2 0.1  28.3 0.1  28.4 0.1
            1e-2 0.99  29.3 0.1  29.3 0.3  29.4 0.2
            1e-2 0.997 29.2 0.2  29.3 0.1  29.4 0.5
            1e-2 0.999 28.9 0.2  28.7 0.1  29.8 0.4
        """),
    ),
    "language_modeling": PaperTable(
        "Validation perplexity of a Transformer on WikiText-103",
        "a Transformer with adaptive inputs on WikiText-103 (100 million tokens, 260,000 words), 3 seeds, on eight "
        "V100 GPUs in half precision",
        "",
        3,
        _rows("""
            1e-4 0.99  21.0 0.1  21.0 0.1  21.1 0.1
            1e-4 0.998 19.9 0.0  19.9 0.0  20.0 0.0
            1e-4 0.999 20.0 0.0  20.0 0.0  20.1 0.1
            3e-4 0.99  21.3 0.3  20.8 0.1  22.4 0.0
            3e-4 0.998 19.6 0.0  19.6 0.0  19.6 0.1
            3e-4 0.999 19.5 0.0  19.5 0.0  19.5 0.0
            5e-4 0.99  24.4 2.4  24.1 1.4  26.0 1.8
            5e-4 0.998 20.1 0.0  20.0 0.0  20.1 0.0
            5e-4 0.999 19.8 0.0  19.7 0.1  19.7 0.0
        """),
    ),
    "machine_translation": PaperTable(
        "BLEU of a Transformer on WMT16 English to German",
        "a Transformer on WMT16 English to German, newstest14, 3 seeds, on eight V100 GPUs in half precision with "
        "gradients accumulated over 16 batches",
        "",
        3,
        _rows("""
            5e-5 0.98  24.5 0.1  24.4 0.1  24.4 0.1
            5e-5 0.99  24.5 0.0  24.5 0.0  24.5 0.1
            5e-5 0.998 24.3 0.2  24.4 0.2  24.4 0.1
            5e-5 0.999 24.2 0.1  24.2 0.1  24.1 0.1
            8e-5 0.98  25.9 0.1  25.9 0.1  25.9 0.1
            8e-5 0.99  25.9 0.2  25.9 0.1  25.9 0.0
            8e-5 0.998 26.0 0.1  25.2 1.0  25.9 0.1
            8e-5 0.999 25.7 0.1  25.8 0.1  25.7 0.0
            1e-4 0.98  26.5 0.1  26.6 0.1  26.6 0.1
            1e-4 0.99  26.7 0.1  26.6 0.1  26.6 0.0
            1e-4 0.998 25.9 0.9  26.5 0.1  26.6 0.0
            1e-4 0.999 26.2 0.2  26.4 0.0  26.4 0.0
        """),
    ),
}
# Of figure 2, in units of the learning rate: the median update at iteration 40, and in the long run.
SETTLES_AT, LEVEL, LONG_RUN = 40, 0.16, 0.153
# Of figure 1: from where on the gradients are noisy, after how many updates their size settles, and where.
NOISY_FROM, SETTLED_AT, SETTLED_LEVEL = 50, 100, 0.15
SIMULATION = "25,000 parameters, 1,000 iterations, β₁ = 0.9, β₂ = 0.999, ε = 0"
ANALYSIS = "EMNIST digits (240,000 images), 784-200-100-50-10, batches of 256, 10,000 iterations, all of them measured"
