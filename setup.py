"""Packaging of the library alone. The programs in `trainers` run from a checkout and are not part of the wheel.

The version is in tfwarmup/version.py; CITATION.cff repeats it, which a test checks.
"""

import pathlib
import re

from setuptools import find_packages, setup

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "tfwarmup/version.py").read_text())[1]
# What every program of a checkout needs besides TensorFlow.
PROGRAMS = [
    "absl-py",
    "grpcio",  # what keras-tuner imports, and does not ask for
    "importlib_resources",  # what TFDS needs to prepare its built-in sets, and does not ask for
    "jinja2",
    "keras-tuner>=1.4.8",
    "matplotlib",
    "mlxtend",
    "num2words",
    "pandas",
    "sacrebleu",
    "scipy",
    "sentencepiece",
    "statsmodels",
    "tensorboard",  # which TensorFlow 2.21 no longer brings
    "tensorflow-datasets>=4.9.10",
    "tqdm",
]
# What runs the trials of a sweep in several processes; 2.60 is the first version whose local instance wants a token.
RAY = ["ray>=2.60; python_version < '3.14'"]
# TensorFlow without CUDA takes half the space. It exists for Linux and Windows on x86; elsewhere no build has CUDA.
HAS_CPU_BUILD = "platform_machine in 'x86_64 AMD64' and sys_platform != 'darwin'"
HAS_NONE = "platform_machine not in 'x86_64 AMD64' or sys_platform == 'darwin'"


def long_description() -> str:
    """The README without relative pictures and links, which lead nowhere on a package index."""
    text = re.sub(r"^!\[[^]]*\]\((?!https?:)[^)]+\)\n+", "", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:)[^)]+\)", r"\1", text)


setup(
    name="tfwarmup",
    version=VERSION,
    description="Untuned warmup for Adam, and RAdam decomposed, for Keras",
    long_description=long_description(),
    long_description_content_type="text/markdown",
    author="the tfwarmup authors",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["adam", "deep learning", "keras", "learning rate", "optimizer", "radam", "warmup"],
    packages=find_packages(include=["tfwarmup", "tfwarmup.*"]),
    package_data={"tfwarmup": ["py.typed"]},
    python_requires=">=3.11",
    install_requires=["keras>=2.15,<4,!=3.0.*,!=3.1.*,!=3.2.*", "numpy"],
    extras_require={
        # For users of the library.
        "tuner": ["keras-tuner>=1.4.8", "tensorboard"],
        "plots": ["matplotlib"],  # for `tfwarmup.plot` and the figure of a `WarmupCheck`
        "addons": ["tensorflow>=2.15,<2.16", "tensorflow-addons>=0.23,<0.24"],
        # For a checkout: all programs, what `make reproduce` installs, the documentation, and what `make test` adds.
        "ray": RAY,
        "trainers": [*PROGRAMS, *RAY, "keras-hub", "tensorflow>=2.21"],
        "reproduce": [*PROGRAMS, *RAY, f"tensorflow-cpu>=2.21; {HAS_CPU_BUILD}", f"tensorflow>=2.21; {HAS_NONE}"],
        "docs": ["ipykernel", "mkdocs-material", "mkdocstrings[python]>=1", "nbclient", "nbformat"],
        "test": [
            "build",
            "import-linter",
            "jax",
            "mpmath",
            "mypy",
            "optax",
            "psutil",
            "pytest",
            "pytest-xdist",
            "pyyaml",
            "readme_renderer[md]",
            "ruff",
            "scikit-learn",
            "selenium",
            "tensorflow>=2.21",
            "torch",
        ],
    },
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
