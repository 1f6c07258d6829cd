from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.threads import by_all

from smxgb.rows import Group, Schema, Stored, Summary, summarise
from smxgb.rows.batch import Dense
from smxgb.settings import Labels, parse
from smxgb.training.notices import OBSERVED, Observed, Observer, about_rows
from smxgb.training.notices.columns import Moments
from smxgb.training.notices.sketch import KEPT, Sketch, Sketcher

SCHEMA = Schema(("time", "k", "a", "c"), invented=False, categories={"c": ("no", "yes")})
ROWS = 9_000


def table() -> tuple[pa.Table, np.ndarray]:
    """Return features and labels; a time, one that tells the label, a plain one, and the label as words."""
    chance = np.random.default_rng(0)
    label = np.sort(chance.integers(0, 2, ROWS)).astype(np.float32)
    codes = pa.array(label.astype(np.int32))
    features = {
        "time": pa.array(chance.integers(10**9, 2 * 10**9, ROWS).astype(np.float32)),
        "k": pa.array(
            (label - chance.uniform(size=ROWS) / 2).astype(np.float32), mask=chance.random(ROWS) < 0.2
        ),
        "a": pa.array(chance.normal(size=ROWS).astype(np.float32)),
        "c": pa.DictionaryArray.from_arrays(codes, pa.array(["no", "yes"])),
    }
    return pa.table(features), label


def stored(begin: int, end: int, size: int = 700) -> Stored:
    features, label = table()
    batches = [
        Dense(features.slice(at, min(size, end - at)), {"label": label[at : min(at + size, end)]})
        for at in range(begin, end, size)
    ]
    summary = Summary()
    for batch in batches:
        summary = summary.merge(summarise(batch))
    return Stored(summary, lambda: iter(batches))


def observe(kept: Stored, label: Labels, *, of_train: bool = True) -> Observed:
    observer = Observer(SCHEMA, label, of_train=of_train, compared=True)
    watched = observer.watch(kept)
    next(watched.batches())  # a pass that ends early does not count
    assert sum(batch.rows for batch in watched.batches()) == kept.rows
    assert sum(batch.rows for batch in watched.batches()) == kept.rows
    return observer.observed


def said(train: Observed, validation: Observed) -> list[str]:
    channels = {"train": stored(0, ROWS).summary, "validation": stored(0, 2_000).summary}
    settings = parse({"num_round": 1, "objective": "binary:logistic"}).settings
    return list(about_rows(settings, SCHEMA, channels, {"train": train, "validation": validation}))


def test_what_several_workers_see_is_what_one_sees() -> None:
    label = stored(0, ROWS).summary.label
    assert label is not None
    shares = [(0, 3_000), (3_000, 3_100), (3_100, ROWS)]

    def work(group: Group) -> Observed:
        mine = observe(stored(*shares[group.rank]), label)
        first, *others = (each["train"] for each in group.gather({"train": mine}, OBSERVED))
        for other in others:
            first = first.merge(other)
        return first

    validation = observe(stored(0, 2_000), label, of_train=False)
    alone = said(observe(stored(0, ROWS), label), validation)
    time, exact, shared = alone
    assert time.startswith("The column 'time' has whole numbers above")
    assert exact.startswith("The columns 'k', 'c' tell the label exactly")
    assert shared.startswith("100 % of validation's rows are in train too")
    for together in by_all(work, ["algo-1", "algo-2", "algo-3"]):
        assert isinstance(together, Observed)
        assert said(together, validation) == alone


def test_a_worker_without_rows_sees_nothing() -> None:
    observer = Observer(SCHEMA, None, of_train=True, compared=True)
    assert list(observer.watch(Stored(Summary(), lambda: iter(()))).batches()) == []
    assert observer.observed == Observed()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5])
def test_a_sketch_of_many_rows_tells_how_many_are_common(share: float) -> None:
    chance = np.random.default_rng(1)
    train = chance.normal(size=(100_000, 3)).astype(np.float32)
    validation = chance.normal(size=(20_000, 3)).astype(np.float32)
    validation[: int(share * 20_000)] = train[: int(share * 20_000)]
    train_sketch, sketch = (sketch_of(rows) for rows in (train, validation))
    assert len(train_sketch.hashes) == KEPT
    common, compared = sketch.rows_in(train_sketch)
    assert compared > 500
    assert common / compared == pytest.approx(share, abs=0.06 if share else 0)


def sketch_of(rows: np.ndarray) -> Sketch:
    sketcher = Sketcher()
    for part in np.array_split(rows, 5):
        sketcher.take(Dense(pa.table(list(part.T), ["a", "b", "c"]), {}))
    return sketcher.sketch


def test_moments_in_parts_are_those_of_all_rows() -> None:
    chance = np.random.default_rng(2)
    x, y = (chance.normal(1e4, 3, 1_000).astype(np.float32) for _ in range(2))
    parts = Moments.of(x[:10], y[:10]).merge(Moments.of(x[10:], y[10:]))
    correlation = parts.products / np.sqrt(parts.feature_squares * parts.label_squares)
    assert correlation == pytest.approx(np.corrcoef(x.astype(np.float64), y.astype(np.float64))[0, 1])
