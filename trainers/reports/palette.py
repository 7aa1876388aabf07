"""The colours of the page: those of every figure, and lighter ones for a dark screen."""

from collections.abc import Iterable

from trainers.figures.look import PLAIN, STYLES, VARIANTS, Style

PAPER, NIGHT = "#FFFFFF", "#15191E"  # what stands behind, in page.css too
CONTRAST = 4.5  # at least: what WCAG asks for text, and lines are thinner than letters
DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}

Channels = tuple[int, int, int]


def channels(colour: str) -> Channels:
    """Red, green and blue.

    >>> channels("#0072B2")
    (0, 114, 178)
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def translucent(colour: str, opacity: float) -> str:
    return f"rgba({', '.join(map(str, channels(colour)))}, {opacity})"


def contrast(first: str, second: str) -> float:
    """WCAG's contrast ratio of two colours.

    >>> round(contrast("#FFFFFF", "#000000"), 6)
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def at_night(colour: str) -> str:
    """The colour, mixed with white until it stands out from the dark as it does from paper: black becomes white."""
    wanted = max(CONTRAST, contrast(colour, PAPER))
    for step in range(21):
        mixed = "#" + "".join(f"{round(value + (255 - value) * step / 20):02X}" for value in channels(colour))
        if contrast(mixed, NIGHT) >= wanted:
            return mixed
    return PAPER


def night_css(styles: Iterable[Style] = (*STYLES.values(), *VARIANTS.values())) -> str:
    """Rules that lighten Plotly's lines and areas on a dark screen.

    Plotly writes colours into the elements; a rule with !important stands above them, and it follows the screen and
    the printer at once, which a script could not.
    """
    rules = []
    for colour in dict.fromkeys([PLAIN, *(style.colour for style in styles)]):
        red, green, blue = channels(colour)
        for what in ("stroke", "fill"):
            selector = f'.js-plotly-plot [style*="{what}: rgb({red}, {green}, {blue})"]'
            rules.append(f"{selector} {{ {what}: {at_night(colour)} !important; }}")
    return "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}\n"


def _luminance(colour: str) -> float:
    parts = [value / 255 for value in channels(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
