"""Plain products in the place of the kernels, to follow what is done with their counts."""

from __future__ import annotations

from unsample.designs import _device, _device_rounds, _fused


def stand_in(monkeypatch) -> None:
    """Let a processor do what the kernels do on CUDA, some targets at a time."""
    import torch

    def own_scores(users, items, targets, *, launch):
        return (users.float() * items[targets].float()).sum(1)

    def count_above(users, items, own, *, ties, launch):
        scores = users.float() @ items.float().T
        return (scores > own[:, None]).sum(1), (scores >= own[:, None]).sum(1)

    def count_excluded(users, items, own, excluded, *, launch):
        starts, stops, places = excluded
        length = stops - starts
        row = torch.repeat_interleave(torch.arange(len(users)), length)
        at = torch.arange(len(row)) + (starts - length.cumsum(0) + length)[row]
        scores = (users[row].float() * items[places[at]].float()).sum(1)
        return tuple(
            torch.bincount(row[which], minlength=len(users))
            for which in (scores > own[row], scores >= own[row])
        )

    def score_pairs(users, items, who, what):
        return (users[who].double()[:, None] * items[what].double()).sum(2).to(users.dtype)

    def count(self, history, targets, counted):
        starts, items, values = history
        row = torch.repeat_interleave(torch.arange(len(counted)), starts.diff())
        sums = torch.zeros(counted.shape, dtype=self.weights.dtype)
        sums.index_add_(0, row, values[:, None] * self.weights[items])
        if self.bias is not None:
            sums += self.bias
        if self.newcomers is not None:
            sums[starts.diff() == 0] = self.newcomers
        own = sums.gather(1, targets[:, None])
        among = counted.bool()
        return ((sums > own) & among).sum(1), ((sums == own) & among).sum(1), own[:, 0]

    monkeypatch.setattr(_fused.Sums, "count", count)
    for kernel in (own_scores, count_above, count_excluded, score_pairs):
        monkeypatch.setattr(_fused, kernel.__name__, kernel)
    monkeypatch.setattr(_device, "_is_fused", lambda *_: True)
    for room in (_device, _device_rounds):
        monkeypatch.setattr(room, "TARGETS", 64)
