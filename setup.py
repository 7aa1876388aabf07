"""Packaging of the library; the version stands in tfwarmup/version.py."""

import pathlib
import re

from setuptools import find_packages, setup

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "tfwarmup/version.py").read_text())[1]

setup(
    name="tfwarmup",
    version=VERSION,
    description="Untuned warmup for Adam, and RAdam decomposed, for Keras",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    packages=find_packages(include=["tfwarmup", "tfwarmup.*", "trainers", "trainers.*"]),
    package_data={"tfwarmup": ["py.typed"], "trainers.reports": ["*.html", "*.css", "*.js"]},
    python_requires=">=3.11",
    install_requires=["keras>=2.15,<4,!=3.0.*,!=3.1.*,!=3.2.*", "numpy"],
    extras_require={
        "trainers": [
            "absl-py",
            "grpcio",  # what keras-tuner needs for its chief and workers, and does not ask for
            "importlib_resources",  # what TFDS needs to prepare its built-in sets, and does not ask for
            "jinja2",
            "keras-hub",
            "keras-tuner>=1.4.8",
            "matplotlib",
            "mlxtend",
            "num2words",
            "plotly",
            "sacrebleu",
            "scipy",
            "sentencepiece",
            "tensorboard",  # which TensorFlow 2.21 no longer brings
            "tensorflow>=2.21",
            "tensorflow-datasets>=4.9.10",
            "tqdm",
        ],
        "test": [
            "build",
            "jax",
            "mpmath",
            "mypy",
            "optax",
            "psutil",
            "pytest",
            "pytest-xdist",
            "ruff",
            "selenium",
            "tensorflow>=2.21",
            "torch",
        ],
        "addons": ["tensorflow>=2.15,<2.16", "tensorflow-addons>=0.23,<0.24"],
    },
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
