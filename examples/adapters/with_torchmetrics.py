"""TorchMetrics, in plain PyTorch or Lightning: full-catalogue metrics in the training loop."""

import torch

from unsample.adapters.torchmetrics import EstimatedMetrics

ITEMS, SAMPLED = 5000, 99


def their_objects():
    """Score each target (the first column) and 99 drawn items, batch by batch."""
    generator = torch.Generator().manual_seed(0)
    batches = torch.randn(5, 128, SAMPLED + 1, generator=generator)
    batches[:, :, 0] += 2 * torch.rand(5, 128, generator=generator)
    return list(batches)


def full_catalogue(batches):
    """Update with every batch, and compute at the end of the epoch."""
    metric = EstimatedMetrics(items=ITEMS, sampled=SAMPLED, metrics=["Recall@100", "NDCG@100"])
    for scores in batches:
        metric.update(scores)
    return metric.compute()


def main():
    """Return the results, one for each way to the whole catalogue."""
    return [full_catalogue(their_objects())]


if __name__ == "__main__":
    print(*main(), sep="\n\n")  # noqa: T201
