"""The page as one self-contained HTML file, with styles, scripts and all numbers inside."""

import base64
import hashlib
import importlib.resources
import json
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from trainers.reports.blocks import Charts, Claims, Section, TableBlock
from trainers.reports.config import TITLE
from trainers.reports.palette import DASHES, palette_css, variable
from trainers.reports.sections import all_sections, introduction
from trainers.reports.tables import Shown
from trainers.results.methods import DRAWN, style_of
from trainers.results.runs import Runs

SCRIPTS = ("scales.js", "charts.js", "downloads.js", "factors.js", "slider.js", "page.js")
PRESETS = (0.9, 0.98, 0.99, 0.997, 0.999, 0.9999)  # values of beta_2


def make_page(runs: Runs, title: str = TITLE) -> str:
    """Returns the whole page as HTML."""
    sections = all_sections(runs)
    scripts = [_file(name) for name in SCRIPTS]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_file("page.html")).render(
        title=title,
        introduction=introduction(),
        sections=sections,
        css=Markup(_file("page.css") + palette_css()),
        data=Markup(embedded(_data(sections))),
        scripts=[Markup(script) for script in scripts],
        allowed=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
        methods=[style_of(name) for name in DRAWN],
        presets=PRESETS,
    )


def embedded(data: Any) -> str:
    """JSON with escaped markup, so that it cannot close the element around it."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(sections: list[Section]) -> dict[str, Any]:
    """The data for the scripts: charts, the rows of every CSV file, and the inputs of the warmup factors."""
    blocks = [block for section in sections for block in section.blocks]
    charts = [chart for block in blocks if isinstance(block, Charts) for chart in block.charts]
    tables: list[Shown] = [block.table for block in blocks if isinstance(block, (TableBlock, Claims))]
    nodes, weights = np.polynomial.legendre.leggauss(24)
    return {
        "charts": {chart.name: chart.document() for chart in charts},
        "tables": {table.name: table.records for table in tables},
        "methods": [
            {"name": name, "label": style.label, "colour": variable(style.colour), "dash": DASHES[style.dash]}
            for name, style in ((name, style_of(name)) for name in DRAWN)
        ],
        "quadrature": {"nodes": nodes.tolist(), "weights": weights.tolist()},
    }


def _file(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """The hash of a script for the page's content security policy, which blocks all other scripts."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
