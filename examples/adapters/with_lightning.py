"""Lightning: full-catalogue metrics beside the others of a validation, by one callback."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from unsample.adapters.lightning import callback

ITEMS, SAMPLED, USERS = 1000, 99, 512


class Model(lightning.LightningModule):
    """Vectors of users and items, whose validation step scores each target and 99 drawn items."""

    def __init__(self):
        """Make vectors of which the target's is nearer to the user's than most."""
        super().__init__()
        self.users, self.items = torch.nn.Embedding(USERS, 8), torch.nn.Embedding(ITEMS, 8)

    def validation_step(self, batch):
        """Return scores, the target's first: that is all the callback needs."""
        users, candidates = batch
        return (self.users(users)[:, None] * self.items(candidates)).sum(dim=2)


def their_objects():
    """Make a model, and for each user the target and 99 drawn items, the target first."""
    torch.manual_seed(0)
    model = Model()
    with torch.no_grad():
        scores = model.users.weight @ model.items.weight.T
    target = (scores + 6 * torch.randn_like(scores)).argmax(dim=1)
    drawn = torch.randint(ITEMS - 1, (USERS, SAMPLED))
    drawn += drawn >= target[:, None]  # anything but the target
    candidates = torch.cat([target[:, None], drawn], dim=1)
    return model, DataLoader(TensorDataset(torch.arange(USERS), candidates), batch_size=64)


def full_catalogue(model, validation):
    """Give the trainer the callback; what it logs stands beside all else that is logged."""
    full = callback(items=ITEMS, sampled=SAMPLED, metrics=["Recall@50", "NDCG@50"])
    trainer = lightning.Trainer(callbacks=[full], **QUIET)
    trainer.validate(model, validation)
    return (
        trainer.callback_metrics
    )  # val/Recall@50_full, val/Recall@50_low, val/Recall@50_high, ...


QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(*their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
