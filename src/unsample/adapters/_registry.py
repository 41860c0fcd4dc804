"""The list of adapters: what each offers and how to get its library, without importing any."""

from __future__ import annotations

from types import MappingProxyType

from unsample.adapters._protocol import Adapter

__all__ = ["REGISTRY"]

REGISTRY: MappingProxyType[str, Adapter] = MappingProxyType(
    {
        adapter.name: adapter
        for adapter in (
            Adapter(
                "cornac",
                "Cornac",
                "cornac",
                {"task": "a fitted model and its evaluation method -> Task"},
                install="cornac",
                tried="3.0.1",
            ),
            Adapter(
                "implicit",
                "implicit",
                "implicit",
                {"task": "a fitted model, training and test matrices -> Task"},
                install="implicit",
                tried="0.7.3",
            ),
            Adapter(
                "lenskit",
                "LensKit",
                "lenskit",
                {
                    "targets": "scored item lists and test item lists -> Targets",
                    "task": "a trained pipeline, training data and test item lists -> Task",
                },
                install="'lenskit==2025.8.1' 'pandas<3'",
                tried="2025.8.1",
                alone=True,
            ),
            Adapter(
                "pykeen",
                "PyKEEN",
                "pykeen",
                {
                    "targets": "a SampledRankBasedEvaluator after evaluation -> Targets",
                    "task": "a trained model and its test triples -> Task",
                },
                install="pykeen",
                tried="1.11.1",
            ),
            Adapter(
                "ranx",
                "ranx",
                "ranx",
                {"targets": "a Run and Qrels -> Targets"},
                install="ranx",
                tried="0.3.21",
                alone=True,
            ),
            Adapter(
                "recbole",
                "RecBole",
                "recbole",
                {
                    "published": "the metrics of a uni100 evaluation -> Published",
                    "targets": "a model and the uni100 loader of its test data -> Targets",
                    "task": "a model and the full loader of its test data -> Task",
                },
                install="'recbole==1.2.1' 'numpy<2' 'pandas<3' 'setuptools<81'",
                tried="1.2.1",
                alone=True,
            ),
            Adapter(
                "rectools",
                "RecTools",
                "rectools",
                {
                    "targets": "a table of recommendations and one of test interactions -> Targets",
                    "task": "a fitted model, its dataset and test interactions -> Task",
                },
                install="'rectools==0.19.0' 'numpy<2'",
                tried="0.19.0",
                alone=True,
            ),
            Adapter(
                "spark",
                "Spark",
                "pyspark",
                {
                    "exact_counts": "a frame of targets and a scorer -> RankCounts of full ranks",
                    "sampled_counts": "a frame of targets and a scorer -> RankCounts",
                    "spark_session": "a local session",
                },
                install="'unsample[spark]'",
                tried="4.3.0",
            ),
            Adapter(
                "torchmetrics",
                "TorchMetrics",
                "torchmetrics",
                {"EstimatedMetrics": "batches of scores of a training loop -> metrics"},
                install="'unsample[torchmetrics]'",
                tried="1.9.0",
            ),
            Adapter(
                "trec",
                "ir_measures",
                "ir-measures",
                {"targets": "TREC run and qrels files, or rows of them -> Targets"},
                install="ir-measures",
                tried="0.4.3",
            ),
        )
    }
)
