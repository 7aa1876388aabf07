"""What a run shows while it is under way."""

import re

from tests.trainers.helpers import BASE, records
from tests.trainers.tiny import Tiny, TinyConfig
from trainers.engine.flags import make_config
from trainers.engine.run import train


def test_the_progress_bar_shows_the_newest_record_while_it_validates(tmp_path, capsys):
    shown = []

    class Watched(Tiny):
        def extra_validation(self, config, data, model):
            def look():
                shown.append(re.findall(r"loss (\S+), rate", capsys.readouterr().err)[-1])
                return {}

            return look

    options = {**BASE, "progress": True, "output_dir": str(tmp_path), "epochs": 3}
    train(Watched(), make_config(TinyConfig, options))
    assert shown == [f"{line['loss']:.4g}" for line in records(tmp_path) if "val_loss" in line]
