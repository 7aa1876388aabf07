"""Bad input is one line, exit code 2, and nothing changed."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.forks import QUIET, ROOT
from tests.trainers.helpers import (
    final_weights,
    finish,
    program,
    records,
    run_tiny,
    snapshot,
    status,
    tiny_config,
    tiny_flags,
)
from tests.trainers.reports import training_records, write_run
from tests.trainers.tiny import TinyConfig
from trainers.analysis.config import AnalysisConfig
from trainers.engine.flags import make_config
from trainers.engine.folder import RunFolder
from trainers.engine.program import parse_arguments
from trainers.figures.config import SimulationConfig, WarmupConfig
from trainers.figures.programs import draw_warmups, simulate
from trainers.reports.program import write_report
from trainers.reproduce import ReproductionConfig, reproduce
from trainers.sweeps.space import sweep_config_class
from trainers.system.access import locked
from trainers.system.errors import ConfigError, shortage
from trainers.tasks.images.config import ImageConfig
from trainers.tasks.language.config import LanguageConfig
from trainers.tasks.translation.config import TranslationConfig

TINY = "tests.trainers.tiny"
ROOT_USER = os.geteuid() == 0


@pytest.fixture
def refused():
    """Asserts that a program ends with the message in one line, with exit code 2, and changes nothing."""

    def check(module, arguments, folder, message, **environment):
        before = snapshot(folder)
        output, errors = finish(program(module, *arguments, **environment), code=2)
        assert (output, errors.count("\n")) == ("", 1), errors
        assert errors.startswith("error: ")
        assert message in errors
        assert snapshot(folder) == before

    return check


def assert_refused(message, config_class, *arguments):
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_arguments(config_class, ["--output_dir=-", *arguments])


@pytest.mark.parametrize(
    ("config_class", "flags", "message"),
    [
        (TinyConfig, "--seed=-1", "--seed must be an integer between 0 and 2^32 - 1. Received: -1"),
        (TinyConfig, "--seed=1.5", "--seed must be an integer. Received: '1.5'"),
        (TinyConfig, "--steps=9223372036854775808", "--steps must be an integer between -2^63 and 2^63 - 1"),
        (TinyConfig, "--xla=maybe", "--xla must be true or false. Received: 'maybe'"),
        (TinyConfig, "--optimizer=adamm", "--optimizer must be one of adam, radam, keras_adam, "),
        (TinyConfig, "--learning_rate=", "--learning_rate must be a number. Received: ''"),
        (TinyConfig, "--learning_rate=nan", "--learning_rate must be a number. Received: 'nan'"),
        (TinyConfig, "--weight_decay=-1", "--weight_decay must be a number >= 0. Received: -1.0"),
        (TinyConfig, "--global_clipnorm=inf", "--global_clipnorm must be a number > 0. Received: inf"),
        (TinyConfig, "--dropout=-0.1", "--dropout must be in [0, 1). Received: -0.1"),
        (TinyConfig, "--decay=step --decay_epochs=2,2", "--decay_epochs must be numbers, each larger than the one be"),
        (TinyConfig, "--decay=step --decay_epochs=", "--decay_epochs must be numbers, each larger than the one before"),
        (TinyConfig, "--decay=step --decay_epochs=-1,2", "--decay_epochs must be a number > 0. Received: -1.0"),
        (TinyConfig, "--decay=step --decay_epochs=many", "--decay_epochs must be a number. Received: 'many'"),
        (TinyConfig, "--warmup_period=7", "--warmup_period is for --warmup=linear and exponential, not for untuned_l"),
        (TinyConfig, "--decay=cosine --decay_epochs=1", "not for cosine (--decay_epochs=30,60 takes it back)"),
        (TinyConfig, "--batchsize=3", "be among those of --help. Received: --batchsize; did you mean --batch_size?"),
        (TinyConfig, "word", "Arguments must be flags, --name=value. Received: 'word'"),
        (TinyConfig, "--config=nowhere", "must be the config.json of a run. Received: 'nowhere' (No such file"),
        (TinyConfig, "--config=trainers", "be the config.json of a run. Received: 'trainers' (not a regular file)"),
        (TinyConfig, "--flagfile=nowhere", "must be a text file of flags. Received: 'nowhere' (No such file"),
        (TinyConfig, "--flagfile=trainers", "must be a text file of flags. Received: 'trainers' (not a regular file)"),
        (TinyConfig, "--flagfile=", "--flagfile must be a text file of flags. Received: ''"),
        (LanguageConfig, "--cutoffs=1.5", "--cutoffs must be an integer. Received: '1.5'"),
        (ImageConfig, "--bad_images=keep", "--bad_images must be one of fail, skip. Received: 'keep'"),
        (SimulationConfig, "--iterations=0", "--iterations must be an integer between 1 and 10000000. Received: 0"),
        (SimulationConfig, "--first_steps=nothing", "--first_steps is for --warmup=radam, not for none"),
        (WarmupConfig, "--updates=1000000000000", "--updates must be an integer between 2 and 10000000"),
        (AnalysisConfig, "--gradient_samples=1000000000", "--gradient_samples must be an integer between 2 and 10"),
        (sweep_config_class("image_classification"), "--seeds=1,-1", "--seeds must be an integer between 0 and 2^32"),
        (sweep_config_class("image_classification"), "--trials=9", "--trials is for --search=random and bayesian"),
        (TinyConfig, "--momentum=0.5", "--momentum is for --optimizer=keras_sgd and keras_nag, not for adam"),
        (ImageConfig, "--data_dir=/data", "--data_dir is for data on disk, not for --dataset=digits"),
        (LanguageConfig, "--data_dir=/data", "--data_dir is for data on disk, not for --dataset=pydoc"),
        (TranslationConfig, "--data_dir=/data", "a TranslateFolder and TFDS sets, not for --dataset=numbers"),
        (
            TranslationConfig,
            "--dataset=text --source=a --target=b --target_language=fr",
            "--target_language is for data that come in several languages, not for --dataset=text",
        ),
        (ReproductionConfig, "--workers=100000000", "--workers must be an integer between 1 and 1024"),
    ],
)
def test_a_value_that_no_run_can_have_is_refused(config_class, flags, message):
    assert_refused(message, config_class, *flags.split())


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"[1]", "--config must be the config.json of a run. Received: '{}' (not a JSON object, but list)"),
        (b"{", "--config must be the config.json of a run. Received: '{}' (not JSON: "),
        (b"\xff", "--config must be the config.json of a run. Received: '{}' (not UTF-8: byte 0xff at 0)"),
        (b"[" * 100_000, "--config must be the config.json of a run. Received: '{}' (not JSON: "),
        (b'{"config": [1]}', "--config must be the config.json of a run. Received: '{}'"),
        (b'{"config": {"parameters": 3}}', "--config must be the config.json of a run of this program. Received: '{}"),
        (b'{"config": {"seed": true}}', "--seed must be an integer. Received: True"),
        (b'{"config": {"seed": 1e999}}', "--seed must be an integer. Received: inf"),
        (b'{"config": {"xla": 1}}', "--xla must be true or false. Received: 1"),
        (b'{"config": {"learning_rate": null}}', "--learning_rate must be a number. Received: None"),
        (b'{"config": {"learning_rate": 1' + b"0" * 400 + b"}}", "--learning_rate must be a number. Received: 10"),
        (b'{"config": {"optimizer": null}}', "--optimizer must be text. Received: None"),
        (b'{"config": {"decay_epochs": 3}}', "--decay_epochs must be a list. Received: 3"),
        (b'{"config": {"decay_epochs": [null]}}', "--decay_epochs must be a number. Received: None"),
    ],
)
def test_a_config_of_the_wrong_shape_is_refused(document, message, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(document)
    assert_refused(message.format(path), TinyConfig, f"--config={path}")


def test_a_config_may_have_integers_for_numbers(tmp_path):
    (tmp_path / "config.json").write_text('{"config": {"learning_rate": 1, "decay_epochs": [1, 2], "decay": "step"}}')
    config = parse_arguments(TinyConfig, ["--output_dir=-", f"--config={tmp_path / 'config.json'}"])
    assert (config.learning_rate, config.decay_epochs) == (1.0, (1.0, 2.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"--seed=\xff\n", "--flagfile must be a text file of flags. Received: '{}' (not UTF-8: byte 0xff at 7)"),
        (b"--seed=3\n--flagfile={}\n", "--flagfile must not contain itself. Received: {}, which is in {}"),
        (b"--no_such_flag=3\n", "Flags must be among those of --help. Received: --no_such_flag"),
    ],
)
@pytest.mark.parametrize("module", [TINY, "trainers.sweep"])
def test_a_bad_file_of_flags_is_refused(module, text, message, refused, tmp_path):
    path = tmp_path / "flags"
    path.write_bytes(text.replace(b"{}", bytes(path)))
    arguments = [f"--output_dir={tmp_path / 'run'}", f"--flagfile={path}"]
    refused(module, arguments, tmp_path, message.replace("{}", str(path)))


def test_nobody_waits_for_a_pipe(refused, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for flag in ("config", "flagfile"):
        refused(TINY, [*tiny_flags(tmp_path / "run"), f"--{flag}={tmp_path}/pipe"], tmp_path, "not a regular file")


def test_a_cluster_that_nobody_described_is_found_before_tensorflow_starts(refused, tmp_path):
    flags = tiny_flags(tmp_path / "run", strategy="multiworker")
    refused(TINY, flags, tmp_path, "TF_CONFIG must be like", TF_CONFIG="{")


def prepare(folder, command):
    subprocess.run(command, shell=True, cwd=folder, check=True)


@pytest.mark.parametrize(
    ("command", "place", "message"),
    [
        ("echo mine > run", "run", "which is a file"),
        ("echo mine > run", "run/below/it", "which is below the file"),
        ("ln -s run run", "run", "(Too many levels of symbolic links)"),
        ("ln -s nowhere run", "run", "(No such file or directory)"),
        (":", "a" * 300, "(File name too long)"),
        (":", "a/" * 3000, "(File name too long)"),
    ],
    ids=["file", "below a file", "loop", "nowhere", "long", "deep"],
)
@pytest.mark.parametrize("module", [TINY, "trainers.simulate"])
def test_an_output_folder_that_cannot_be_one_is_refused(module, command, place, message, refused, tmp_path):
    prepare(tmp_path, command)
    refused(module, [f"--output_dir={tmp_path}/{place}"], tmp_path, message)


@contextlib.contextmanager
def mounted(folder, *options):
    """A small disk of its own, which is taken away at the end."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    if not ROOT_USER or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a disk can be mounted by root only")
    try:
        yield folder
    finally:
        # Lazily: TensorBoard's writer of a run that failed is open as long as the process lives.
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_read_only_disk_is_refused(refused, tmp_path):
    with mounted(tmp_path / "disk", "size=1m", "ro") as disk:
        message = f"--output_dir must be a folder that can be written to. Received: '{disk}/run', read-only"
        refused(TINY, tiny_flags(disk / "run"), tmp_path, message)


def fill(disk):
    """Writes until there is no space left."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_is_refused(refused, tmp_path):
    with mounted(tmp_path / "disk", "size=64k") as disk:
        fill(disk)
        refused(TINY, tiny_flags(disk / "run"), tmp_path, "--output_dir must be on a disk with space left. Received")


@contextlib.contextmanager
def almost_full(folder, kilobytes):
    """A disk with so much space left, which is all free afterwards."""
    with mounted(folder, "size=1m") as disk:
        (disk / "filler").write_bytes(bytes(1024 * (1024 - kilobytes)))
        yield disk


def assert_resumes_to_the_bit(disk, whole):
    assert status(disk / "run").startswith("failed: ")
    assert not [path for path in disk.rglob("*") if ".tmp" in path.name or path.name.startswith("tmp")]
    (disk / "filler").unlink()
    np.testing.assert_array_equal(run_tiny(disk / "run"), final_weights(whole))
    assert records(disk / "run") == records(whole)


@pytest.mark.parametrize("kilobytes", [24, 36, 48, 64])
def test_a_run_on_a_disk_that_fills_up_resumes_to_the_bit_when_it_is_freed(kilobytes, whole, tmp_path):
    with almost_full(tmp_path / "disk", kilobytes) as disk:
        with pytest.raises(Exception) as error:  # noqa: PT011 - whatever NumPy, Keras, HDF5 and TensorFlow make of it
            run_tiny(disk / "run")
        assert shortage(error.value).startswith("The disk must have space left; free some"), error.value
        assert_resumes_to_the_bit(disk, whole)


@pytest.mark.slow
def test_a_disk_that_fills_up_is_one_line_and_exit_code_2(whole, tmp_path):
    with almost_full(tmp_path / "disk", 40) as disk:
        _, errors = finish(program(TINY, *tiny_flags(disk / "run")), code=2)
        said = [line for line in errors.splitlines() if line.startswith("error: The disk must have space left")]
        assert len(said) == 1
        assert "Traceback" not in errors
        assert_resumes_to_the_bit(disk, whole)


@pytest.mark.slow
def test_a_run_that_does_not_fit_into_memory_is_told_what_to_do(tmp_path):
    with pytest.raises(MemoryError) as error:
        run_tiny(tmp_path / "run", rows=10**12)
    assert shortage(error.value).startswith("The run must fit into memory: try a smaller model, a smaller batch or")
    with pytest.raises(tf.errors.ResourceExhaustedError) as error:
        run_tiny(tmp_path / "run", width=2**40)
    assert shortage(error.value).startswith("The run must fit into memory")
    assert not shortage(ValueError("a fault of the program"))
    assert not (tmp_path / "run").exists()


def test_more_updates_than_can_be_counted_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--epochs must be fewer than 2\^63 updates. Received: 9223372036854775807"):
        run_tiny(tmp_path / "run", epochs=2**63 - 1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["metrics.jsonl", "results.json", "status", "mine.keras", "factors.csv"])
def test_files_of_others_are_not_overwritten(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=rf"restore .*config.json, .* Received: .* without it, but with {name}"):
        RunFolder(tiny_config(tmp_path), "tiny")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["results.json", "metrics.jsonl", "final.keras", "checkpoints", "tensorboard"])
def test_a_file_and_a_folder_in_each_others_place_are_found_before_the_run_goes_on(name, trained):
    if "." in name:
        (trained / name).unlink(missing_ok=True)
        (trained / name).mkdir()
    else:
        shutil.rmtree(trained / name)
        (trained / name).write_text("in the way")
    before = snapshot(trained)
    kind = "folder" if "." in name else "file"
    with pytest.raises(ConfigError, match=rf"hold a run as it was written. Received: .*{name}, now a {kind}"):
        run_tiny(trained)
    assert snapshot(trained) == before


def test_unrelated_files_of_others_stay_where_they_are(tmp_path):
    names = ("notes.txt", "tmpabcdefgh", ".draft.tmp")
    for name in names:
        (tmp_path / name).write_text("mine")
    run_tiny(tmp_path, epochs=1)
    assert [(tmp_path / name).read_text() for name in names] == ["mine"] * 3


def test_a_run_without_its_config_is_not_taken_for_one_of_another_seed(trained):
    (trained / "config.json").unlink()
    before = snapshot(trained)
    with pytest.raises(ConfigError, match=rf"restore {trained}/config.json, or name another folder.*checkpoints"):
        run_tiny(trained, epochs=8, seed=2)
    assert snapshot(trained) == before


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000),
        *(b'{"task": "tiny"}', b'{"task": "tiny", "config": []}', b'{"task": "tiny", "config": {"seed": "x"}}'),
        b'{"task": "tiny", "config": {"decay_epochs": 3}}',
    ],
)
def test_a_damaged_config_is_named_and_nothing_is_changed(text, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=rf"must be that of a run: restore it, or .* Received: {path} \("):
        RunFolder(tiny_config(tmp_path), "tiny")
    assert snapshot(tmp_path) == {path: text}


def test_a_second_start_of_any_program_is_refused(tmp_path):
    folder = tmp_path / "run"
    with locked(folder):
        for work, config_class in ((simulate, SimulationConfig), (draw_warmups, WarmupConfig)):
            with pytest.raises(ConfigError, match="must not be in use by another process"):
                work(make_config(config_class, {"output_dir": str(folder)}))
        with pytest.raises(ConfigError, match="must not be in use by another process"):
            reproduce(make_config(ReproductionConfig, {"output_dir": str(folder), "only": ("warmups",)}))
        for task in ("tiny", "gradient_analysis", "sweep of tiny"):
            with pytest.raises(ConfigError, match="must not be in use by another process"):
                RunFolder(tiny_config(folder), task)
    assert [path.name for path in folder.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    "command",
    [
        "mkfifo page.html",
        "mkfifo pipe && ln -s pipe page.html",
        "echo mine > page.html",
        "ln -s page.html page.html",
        # A device of its own, never the machine's.
        pytest.param("mknod page.html c 1 3", marks=pytest.mark.skipif(not ROOT_USER, reason="only root can make one")),
    ],
)
def test_the_page_replaces_nothing_but_a_page(command, tmp_path):
    write_run(tmp_path / "run")
    prepare(tmp_path, command)
    before = snapshot(tmp_path)
    with pytest.raises(ConfigError, match="--output must .*Received: .*page.html"):
        write_report([str(tmp_path / "run")], str(tmp_path / "page.html"))
    assert snapshot(tmp_path) == before


def test_the_page_is_written_where_a_link_leads(tmp_path):
    run = write_run(tmp_path / "run")
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    for _ in range(2):
        write_report([str(run)], str(tmp_path / "link.html"))
        assert (tmp_path / "link.html").is_symlink()
        assert "<html" in (tmp_path / "page.html").read_text()[:1000]


@pytest.mark.parametrize("text", [b"{", b"\xff", b""])
@pytest.mark.parametrize("name", ["results.json", "config.json", "metrics.jsonl"])
def test_the_report_names_damaged_files_and_shows_the_rest(name, text, tmp_path):
    write_run(tmp_path / "runs/whole", records=training_records())
    broken = write_run(tmp_path / "runs/broken", records=training_records())
    (broken / name).write_bytes(text + b"\n" if name == "metrics.jsonl" else text)
    said = write_report([str(tmp_path / "runs")], str(tmp_path / "page.html"))
    assert f"left out: {broken / name}" in said
    page = (tmp_path / "page.html").read_text()
    assert f".../broken/{name}" in page
    assert ">whole<" in page.partition('id="table-runs_1"')[2].partition("</table>")[0]


def test_a_damaged_record_costs_only_itself(trained, longer):
    path = trained / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b'\xff\xff\n{"step": "x"}\n{}\n[2]\n', *lines[1:]]))
    run_tiny(trained, epochs=8)
    assert records(trained) == records(longer)


# Runs a program whose standard output or error somebody has closed or nobody reads.
@pytest.mark.parametrize(
    "redirection",
    [
        "> /dev/full",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (">&-", "2>&-", "2> /dev/full", "| head -c 1 > {folder}/one")
        ),
    ],
)
def test_a_lost_output_does_not_end_a_run_but_the_exit_code_tells(redirection, tmp_path):
    flags = " ".join(tiny_flags(tmp_path / "run", progress=True))
    command = f"set -o pipefail; {sys.executable} -m {TINY} {flags} {redirection.format(folder=tmp_path)}"
    ended = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ, **QUIET}
    )
    assert ended.returncode == 5
    assert not re.search("Traceback|Exception ignored", ended.stderr + ended.stdout)
    assert status(tmp_path / "run") == "done\n"
    assert len(final_weights(tmp_path / "run")) > 0


@pytest.mark.parametrize("module", ["image_classification", "sweep", "reproduce", "simulate", "report"])
def test_bad_flags_are_found_before_anything_is_imported(module, tmp_path):
    began = time.perf_counter()
    _, errors = finish(program(f"trainers.{module}", "--no_such_flag=1", fresh=True), code=2)
    assert time.perf_counter() - began < 2
    assert errors == "error: Flags must be among those of --help. Received: --no_such_flag\n"
