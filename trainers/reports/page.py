"""The page as one self-contained HTML file, with styles, scripts and figures inside."""

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence

import jinja2
from markupsafe import Markup

from trainers.reports.analysis_sections import BETA_2
from trainers.reports.content import Section
from trainers.reports.sections import introduction
from trainers.results.methods import DRAWN, style_of

SCRIPTS = ("factors.js", "slider.js")
PRESETS = (0.9, 0.98, 0.99, 0.997, 0.999, 0.9999)  # values of beta_2


def make_page(sections: Sequence[Section], title: str) -> str:
    """Returns the whole page as HTML."""
    scripts = [_file(name) for name in SCRIPTS]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_file("page.html")).render(
        title=title,
        introduction=introduction(),
        sections=sections,
        css=Markup(_file("page.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        methods=[(name, style_of(name).label) for name in DRAWN],
        beta_2=BETA_2,
        presets=PRESETS,
    )


def _file(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """The hash of a script for the page's content security policy, which blocks all other scripts."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
