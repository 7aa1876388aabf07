"""The colours of the page: those of the figures, adjusted for contrast on light and dark screens."""

from collections.abc import Iterable

from trainers.figures.look import PLAIN
from trainers.results.methods import RIVAL_STYLES, STYLES, UNKNOWN_STYLE, VARIANTS, Style

PAPER, NIGHT = "#FFFFFF", "#15191E"  # the backgrounds, as in page.css
BLACK = "#000000"
LINES = 3.0  # the minimum contrast of a line, as WCAG requires for graphics
BY_DAY, BY_NIGHT = 3.4, 4.5  # the minimum contrast of a bold line
DASHES = {"-": "", "--": "9 5", ":": "2.5 3.5", "-.": "9 4 2.5 4"}  # in the syntax of SVG

Channels = tuple[int, int, int]


def channels(colour: str) -> Channels:
    """Red, green and blue.

    >>> channels("#0072B2")
    (0, 114, 178)
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def contrast(first: str, second: str) -> float:
    """WCAG's contrast ratio of two colours.

    >>> round(contrast("#FFFFFF", "#000000"), 6)
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """Mixes a share of another colour into a colour, like an opacity of 1 - share on top of it.

    >>> mixed("#000000", "#FFFFFF", 0.2)
    '#333333'
    """
    parts = zip(channels(colour), channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in parts)


def by_day(colour: str) -> str:
    """The colour, mixed with black until a line has enough contrast on white."""
    return _until(colour, BLACK, PAPER, BY_DAY)


def at_night(colour: str) -> str:
    """The colour, mixed with white until it has at least its contrast on white: black becomes white."""
    return _until(colour, PAPER, NIGHT, max(BY_NIGHT, contrast(colour, PAPER)))


def faint(colour: str, background: str) -> str:
    """The colour of thin lines: as close to the background as the minimum contrast allows."""
    shares = [step / 20 for step in range(14, -1, -1)]
    fading = (mixed(colour, background, share) for share in shares)
    return next((each for each in fading if contrast(each, background) >= LINES), colour)


def variable(colour: str) -> str:
    """The name of the CSS variable of a colour.

    >>> variable("#0072B2")
    'c0072B2'
    """
    return f"c{colour[1:]}"


def palette_css(
    styles: Iterable[Style] = (*STYLES.values(), *VARIANTS.values(), *RIVAL_STYLES.values(), UNKNOWN_STYLE),
) -> str:
    """CSS variables for every colour, bold and faint: for paper and light screens, and for dark ones."""
    colours = dict.fromkeys([PLAIN, *(style.colour for style in styles)])

    def rules(background: str, shade: dict[str, str]) -> str:
        pairs = ((variable(colour), shade[colour]) for colour in colours)
        return "".join(f"--{name}: {shown}; --{name}-faint: {faint(shown, background)}; " for name, shown in pairs)

    day = rules(PAPER, {colour: by_day(colour) for colour in colours})
    night = rules(NIGHT, {colour: at_night(colour) for colour in colours})
    return f":root {{ {day}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {night}}} }}\n"


def _until(colour: str, other: str, background: str, wanted: float) -> str:
    for step in range(21):
        shade = mixed(colour, other, step / 20)
        if contrast(shade, background) >= wanted:
            return shade
    return other


def _luminance(colour: str) -> float:
    parts = [value / 255 for value in channels(colour)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
