"""Every value of the paper's configs stands in a table here, with its source."""

import shlex

import pytest

from tests.trainers.helpers import ROOT
from trainers.analysis.config import AnalysisConfig
from trainers.engine.optimizers import make_optimizer, make_rate
from trainers.engine.program import parse_arguments
from trainers.tasks import CONFIGS

PAPER = "Ma and Yarats (2019)"
EXAMPLE = "PyTorch's ImageNet example at ee964a2, which the paper follows (A.2)"
FAIRSEQ_LM = "fairseq, examples/language_model, WikiText-103 with adaptive inputs"
FAIRSEQ_NMT = "fairseq, examples/scaling_nmt, and the architecture transformer_vaswani_wmt_en_de_big"
OURS = "a choice of this project: it does not change what is learnt"

# name of the config -> source -> flags
RECIPES = {
    "emnist": {
        f"{PAPER} A.5": (
            "dataset=emnist/digits steps=10000 batch_size=256 optimizer=adam learning_rate=1e-3 beta_1=0.9 "
            "beta_2=0.999 epsilon=1e-8 gradient_samples=256"
        ),
        f"{PAPER}, Quasi-hyperbolic momentum and Adam, appendix: MLP-EMNIST": "activation=tanh",
        "a choice of this project: the paper does not say how pixels are scaled": "standardize",
        "mean and deviation of EMNIST's digits in [0, 1]": "standardize_by=0.1733,0.3317",
        f"{PAPER} A.5 names none, and its figure begins at a full update": "warmup=none",
        f"{PAPER} A.5: decoupled": "weight_decay=1e-4",
        f"{PAPER} A.5: of each weight matrix": "sampled_parameters=500",
        f"{PAPER} A.5: at each iteration": "measure_every=1",
        OURS: "log_every=100 checkpoint_every=100",
    },
    "imagenet_resnet50": {
        OURS: "log_every=100 checkpoint_every=1000 strategy=auto",
        f"{PAPER} A.2: ILSVRC 2012": "dataset=imagenet2012",
        f"{PAPER} A.2: 224-pixel crops": "image_size=224",
        f"{PAPER} A.2": (
            "model=resnet50 epochs=90 batch_size=1024 beta_1=0.9 epsilon=1e-8 decay=step decay_epochs=30,60"
        ),
        f"{PAPER} 5.1": "optimizer=adam beta_2=0.999",
        f"{PAPER} 5.1: one of its grid": "learning_rate=1e-3",
        f"{PAPER} A.2: decoupled": "weight_decay=1e-4",
        f"{PAPER} A.2: ten-fold": "decay_factor=0.1",
        f"{EXAMPLE}; half precision is claimed for A.3 and A.4 only": "precision=float32",
    },
    "wikitext103": {
        OURS: "log_every=100 checkpoint_every=1000 strategy=auto nobaselines",
        f"{PAPER} A.3": "dataset=wikitext103 optimizer=adam beta_1=0.9 epsilon=1e-7",
        f"{FAIRSEQ_LM}: tokens-per-sample": "context=3072",
        "Baevski and Auli (2018): context of 2,560 tokens at the final evaluation": "eval_context=2560",
        f"{FAIRSEQ_LM}: 8 GPUs x update-freq 3 x max-tokens 3072": "batch_size=24",
        f"{FAIRSEQ_LM}: update-freq": "accumulate=3",
        f"{FAIRSEQ_LM}: max-update": "steps=286000",
        "fairseq, transformer_lm_wiki103": (
            "layers=16 width=1024 heads=8 inner=4096 cutoffs=20000,60000 factor=4 dropout=0.3 "
            "attention_dropout=0.1 activation_dropout=0.1"
        ),
        "fairseq, transformer_lm_wiki103: adaptive-softmax-dropout": "softmax_dropout=0.2",
        f"{PAPER} 5.2: one of its grid": "learning_rate=3e-4",
        f"{PAPER} 5.2": "beta_2=0.999",
        f"{FAIRSEQ_LM}: clip-norm": "global_clipnorm=0.1",
        f"{FAIRSEQ_LM}: lr-scheduler": "decay=cosine",
        f"{FAIRSEQ_LM}: warmup-updates, after which its cosine begins": "decay_start=16000",
        f"{FAIRSEQ_LM}: min-lr of 1e-4 at a rate of 1": "decay_floor=1e-4",
        f"{PAPER} A.3: half precision": "precision=mixed_float16",
    },
    "wmt16": {
        OURS: "log_every=100 checkpoint_every=1000 strategy=auto",
        f"{PAPER} A.4": "dataset=wmt16_translate/de-en accumulate=16 optimizer=adam beta_1=0.9 epsilon=1e-7",
        f"{FAIRSEQ_NMT}: 32K joint subwords": "vocabulary_size=32768",
        f"{PAPER} A.4: 8 GPUs x 16 minibatches, of fairseq's 3584 tokens": "max_tokens=458752",
        "Vaswani et al. (2017): 300,000 x 25,000 tokens in updates of 400,000, rounded up": "steps=20000",
        FAIRSEQ_NMT: (
            "layers=6 width=1024 heads=16 inner=4096 dropout=0.3 label_smoothing=0.1 decay=inverse_sqrt beam=4 "
            "length_penalty=0.6"
        ),
        f"{FAIRSEQ_NMT}: 0.1 belongs to transformer_wmt_en_de_big": "attention_dropout=0.0",
        f"{PAPER} 5.3: one of its grid": "learning_rate=1e-4",
        f"{PAPER} 5.3": "beta_2=0.99",
        f"{FAIRSEQ_NMT}: warmup-updates, after which it falls": "decay_period=4000",
        f"{PAPER} A.4: half precision": "precision=mixed_float16",
    },
}
CLASSES = {
    "emnist": AnalysisConfig,
    "imagenet_resnet50": CONFIGS["image_classification"],
    "wikitext103": CONFIGS["language_modeling"],
    "wmt16": CONFIGS["machine_translation"],
}
GRIDS = {
    "sweep_imagenet": ("image_classification", "1e-4,1e-3,1e-2", "0.99,0.997,0.999", "1,2,3,4,5"),
    "sweep_wikitext103": ("language_modeling", "1e-4,3e-4,5e-4", "0.99,0.998,0.999", "1,2,3"),
    "sweep_wmt16": ("machine_translation", "5e-5,8e-5,1e-4", "0.98,0.99,0.998,0.999", "1,2,3"),
}


def written_flags(name):
    """The flags of a config, in order."""
    lines = (ROOT / f"configs/paper/{name}.flags").read_text().splitlines()
    return sorted(shlex.split(line)[0].removeprefix("--") for line in lines if line.startswith("--"))


@pytest.mark.parametrize("name", RECIPES)
def test_every_value_of_a_recipe_has_a_source(name):
    assert written_flags(name) == sorted(flag for flags in RECIPES[name].values() for flag in flags.split())


@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_is_the_papers(name):
    task, rates, discounts, seeds = GRIDS[name]
    flagfile, *flags = sorted(written_flags(name), key=lambda flag: not flag.startswith("flagfile=configs/paper/"))
    assert flagfile.startswith("flagfile=configs/paper/")
    methods = "untuned_exponential,untuned_linear,radam"
    grid = {"beta_2s": discounts, "learning_rates": rates, "seeds": seeds, "task": task, "warmups": methods}
    assert flags == [f"{name}={value}" for name, value in grid.items()]


def test_every_config_of_the_paper_is_in_a_table():
    assert {path.stem for path in (ROOT / "configs/paper").iterdir()} == {*RECIPES, *GRIDS}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("warmup", ["untuned_linear", "untuned_exponential", "radam"])
def test_every_recipe_makes_an_optimizer_with_every_method(name, warmup, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = [f"--flagfile=configs/paper/{name}.flags", "--output_dir=x", f"--warmup={warmup}"]
    config = parse_arguments(CLASSES[name], arguments)
    assert make_optimizer(config, 1000, config.steps or 90_000).learning_rate is not None


def test_the_cosine_of_the_language_model_begins_late_and_has_a_floor(monkeypatch):
    monkeypatch.chdir(ROOT)
    flags = ["--flagfile=configs/paper/wikitext103.flags", "--output_dir=x"]
    rate = make_rate(parse_arguments(CONFIGS["language_modeling"], flags), 1000, 286_000)
    assert [float(rate(step)) for step in (0, 8_000, 16_000)] == pytest.approx([3e-4] * 3, rel=1e-6)
    assert float(rate(16_000 + 135_000)) == pytest.approx(3e-4 * (0.5 + 0.5e-4), rel=1e-4)
    assert float(rate(286_000)) == pytest.approx(3e-8, rel=1e-3)
