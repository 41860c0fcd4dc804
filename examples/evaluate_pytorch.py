"""Evaluate your own PyTorch model on a million items, exactly, at a fraction of the cost."""

import sys

import numpy as np
import torch

import unsample

USERS, ITEMS = 200, int(sys.argv[1]) if sys.argv[1:] else 1_000_000


class Model(torch.nn.Module):
    """Any module will do whose forward takes two vectors of ids and returns a score for each."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.user, self.item = torch.nn.Embedding(USERS, 32), torch.nn.Embedding(ITEMS, 32)

    def forward(self, users, items):
        """Return how well each item suits each user."""
        return (self.user(users) * self.item(items)).sum(-1)


def main():
    """Print metrics on the whole catalogue, and what share of it was scored."""
    model, users = Model(), np.arange(USERS)
    targets = np.random.default_rng(0).choice(ITEMS, size=USERS)  # one held-out item a user
    with torch.no_grad():  # in place of training: some users' items come to lie near them
        model.item.weight[targets] += torch.rand(USERS, 1) * 0.7 * model.user.weight
    result = unsample.evaluate(
        model, (users, targets), items=ITEMS, design="certified", metrics=["Recall@10", "NDCG@10"]
    )
    print(result)  # noqa: T201


if __name__ == "__main__":
    main()
