"""The bank: how exact ranks are spread, of many models on many data sets, without users or items.

A data set is in it as histograms: for each model and kind of candidates, how many targets have
each of the first 128 ranks, and how many lie in each bin of 1.25 % of the rank below them. The
prior of the library is learned from it (`unsample.prior`), and judged on data sets left out of it
(``benchmarks/calibration.py``).

>>> bank = load_bank()
>>> one = bank.select(dataset="ml-1m", model="ease", candidates="unseen").sets[0]
>>> one.items, one.targets, one.kind
(3541, 6040, 'unseen')
"""

from unsample.lab.bank._bank import Bank, RankSet, load_bank
from unsample.lab.bank._folder import read_folder

__all__ = ["Bank", "RankSet", "load_bank", "read_folder"]
