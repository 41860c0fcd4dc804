"""The corpus of rankings: histograms of the exact ranks of many models on many data sets.

It holds neither users nor items. For each data set, model and kind of candidates it counts the
targets at each of the first 128 ranks, and in bins beyond them, each 1.25 % of its rank wide. The
prior of the library is learned from the corpus (`unsample.posterior`), and judged on data sets that
were left out (``benchmarks/calibration.py``).

>>> corpus = load_corpus()
>>> one = corpus.select(dataset="ml-1m", model="ease", candidates="unseen").sets[0]
>>> one.items, one.targets, one.kind
(3541, 6040, 'unseen')
"""

from unsample.lab.corpus._corpus import Corpus, RankSet, load_corpus
from unsample.lab.corpus._folder import read_folder

__all__ = ["Corpus", "RankSet", "load_corpus", "read_folder"]
