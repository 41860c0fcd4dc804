"""The callback for Lightning: scores of validation steps become full-catalogue metrics."""

import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import unsample
from tests.libraries import need_library
from unsample.errors import InputError
from unsample.evidence import RankCounts

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own warnings
DESIGN = {"items": 400, "sampled": 9, "metrics": ["Recall@50", "NDCG@50"]}
QUIET = {
    "accelerator": "cpu", "logger": False, "enable_checkpointing": False,
    "enable_progress_bar": False, "enable_model_summary": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def lightning():
    need_library("lightning")
    import lightning

    return lightning


@pytest.fixture(scope="module")
def scores():
    return np.random.default_rng(0).normal(size=(300, 10)).astype(np.float32)


@pytest.fixture
def build(lightning):
    """Make a model that returns what it is given, or what a function makes of it."""
    import torch

    class Given(lightning.LightningModule):
        def __init__(self, returned=lambda scores: scores):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self.returned = returned

        def training_step(self, batch):
            return self.weight.sum() + batch[0].sum()

        def validation_step(self, batch, _index, dataloader_idx=0):
            # The scores of a model that learns: targets rise from epoch to epoch.
            lift = torch.zeros(10)
            lift[0] = self.current_epoch + dataloader_idx
            return self.returned(batch[0] + lift)

        test_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Given


def loader(scores):
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(torch.from_numpy(scores)), batch_size=64)


def wanted(scores, prefix, level=0.95):
    """Return what must be logged of these scores."""
    ranks = 1 + (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    counts = RankCounts.from_ranks(ranks, items=400, sampled=9)
    found = unsample.estimate(counts, metrics=DESIGN["metrics"], resamples=0)
    return {
        f"{prefix}/{name}_{end}": number
        for name in DESIGN["metrics"]
        for end, number in zip(
            ("full", "low", "high"),
            (found[name].value, *found[name].interval(level)),
            strict=True,
        )
    }


def logged(trainer, prefix="val"):
    return {
        name: float(value)
        for name, value in trainer.callback_metrics.items()
        if name.startswith(prefix)
    }


def test_every_validation_logs_the_estimate_of_its_own_scores(lightning, build, scores):
    from lightning.pytorch.callbacks import EarlyStopping

    from unsample.adapters.lightning import callback

    full, seen = callback(**DESIGN), []

    class Watch(lightning.Callback):
        def on_validation_end(self, trainer, _module):
            if not trainer.sanity_checking:
                seen.append(logged(trainer))

    stop = EarlyStopping("val/Recall@50_full", mode="max")
    trainer = lightning.Trainer(max_epochs=2, callbacks=[full, stop, Watch()], **QUIET)
    trainer.fit(build(), loader(scores), loader(scores))
    lifted = scores + np.arange(10) * 0
    for epoch, found in enumerate(seen):
        lifted[:, 0] = scores[:, 0] + epoch
        assert found == pytest.approx(wanted(lifted, "val"), rel=1e-6)
    assert len(seen) == 2
    assert full.result.counts.total == 300
    assert float(stop.best_score) == pytest.approx(seen[1]["val/Recall@50_full"], rel=1e-6)


def test_ranks_levels_and_tests(lightning, build, scores):
    from unsample.adapters.lightning import callback

    def ranks(scores):
        return {"loss": 0.0, "ranks": 1 + (scores[:, 1:] > scores[:, :1]).sum(dim=1)}

    full = callback(**DESIGN, level=0.8)
    trainer = lightning.Trainer(callbacks=[full], **QUIET)
    trainer.test(build(ranks), loader(scores), verbose=False)
    assert logged(trainer, "test") == pytest.approx(wanted(scores, "test", 0.8), rel=1e-6)


def test_one_of_several_dataloaders(lightning, build, scores):
    from unsample.adapters.lightning import callback

    full = callback(**DESIGN, loader=1)
    trainer = lightning.Trainer(callbacks=[full], **QUIET)
    trainer.validate(build(), [loader(scores), loader(scores[:200])], verbose=False)
    lifted = scores[:200].copy()
    lifted[:, 0] += 1
    assert logged(trainer) == pytest.approx(wanted(lifted, "val"), rel=1e-6)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda _: None, "validation_step must return a tensor of scores, .* got NoneType"),
        (lambda s: {"loss": s.sum()}, 'either "scores" or "ranks", got dict of loss'),
        (lambda s: {"scores": s, "ranks": s}, "got dict of scores, ranks"),
        (lambda s: s[:, 1:], r"scores must have sampled \+ 1 = 10 columns"),
        (lambda s: {"ranks": s[:, 0].long() + 20}, r"ranks must be in 1\.\.10"),
    ],
)
def test_wrong_steps_get_one_clear_message(lightning, build, scores, returned, message):
    from unsample.adapters.lightning import callback

    trainer = lightning.Trainer(callbacks=[callback(**DESIGN)], **QUIET)
    with pytest.raises(InputError, match=message):
        trainer.validate(build(returned), loader(scores), verbose=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 95}, "level must be a number in"),
        ({"loader": -1}, "loader must be an integer of at least 0"),
        ({"rng": "x"}, "rng must be an integer"),
        ({"sampled": 400}, "sampled"),
        ({"metrics": "NDGC@10"}, "NDCG"),
        ({"ties": "realistic"}, "ties must be one of"),
    ],
)
def test_wrong_settings_are_refused_before_training(lightning, change, message):
    from unsample.adapters.lightning import callback

    with pytest.raises(InputError, match=message):
        callback(**(DESIGN | {"replacement": False} | change))


def test_a_copy_for_another_process_asks_the_same(lightning):
    from unsample.adapters.lightning import callback

    full = pickle.loads(pickle.dumps(callback(**DESIGN, level=0.9, rng=3, loader=2)))
    assert isinstance(full, lightning.Callback)
    assert (full.level, full.seed, full.loader) == (0.9, 3, 2)
    assert [metric.name for metric in full.metric.metrics] == DESIGN["metrics"]


SCRIPT = """
    import sys
    import numpy as np, torch, pytorch_lightning as pl
    from torch.utils.data import DataLoader, TensorDataset
    from unsample.adapters.lightning import callback

    class Given(pl.LightningModule):
        def validation_step(self, batch):
            return batch[0]

    if __name__ == "__main__":
        scores = torch.from_numpy(np.load(sys.argv[1]))
        full = callback(items=400, sampled=9, metrics=["Recall@50", "NDCG@50"])
        assert isinstance(full, pl.Callback)
        quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
        trainer = pl.Trainer(
            accelerator="cpu", devices=2, strategy="ddp_spawn", callbacks=[full],
            enable_model_summary=False, **quiet,
        )
        trainer.validate(Given(), DataLoader(TensorDataset(scores), batch_size=50), verbose=False)
        for name, value in trainer.callback_metrics.items():
            print(name, float(value))
"""


def test_processes_add_up_with_pytorch_lightning_too(lightning, scores, tmp_path):
    np.save(tmp_path / "scores.npy", scores)
    script = tmp_path / "two_processes.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "scores.npy")],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("val/")]
    found = {name: float(value) for name, value in rows}
    assert found == pytest.approx(wanted(scores, "val"), rel=1e-6)
