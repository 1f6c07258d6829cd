from __future__ import annotations

import pytest

from smxgb.errors import PlatformError, UserError
from smxgb.rows.schema import Schema
from smxgb.rows.summary import Shape, Summary
from smxgb.settings import Labels, Parsed, parse
from smxgb.training.checks import Seen, check_all_rows, check_rows
from smxgb.training.memory_plan import Memory


def settings(**given: object) -> Parsed:
    return parse({"num_round": 1, **given})


def labels(*values: float) -> Labels:
    return Labels(min(values), max(values), whole=True, different=tuple(sorted(set(values))))


def summary(*values: float, weights: float | None = None) -> Summary:
    return Summary(rows=len(values), label=labels(*values), weights=weights)


def seen(*values: float) -> Seen:
    shapes = {"train": Shape(len(values), 2)}
    return Seen(Schema.unnamed(2), {"train": labels(*values)}, shapes, 0, {"train": summary(*values)})


def test_weights_that_are_all_0_are_refused_in_every_channel() -> None:
    channels = {"train": summary(0, 1, weights=0.5), "validation": summary(0, 1, weights=0)}
    with pytest.raises(UserError) as caught:
        check_all_rows(settings(), channels, None)
    assert caught.value.mistakes[0].startswith("channel validation: the weights of all 2 rows are 0")


def test_counted_classes_are_said_with_those_that_no_row_has() -> None:
    checked = check_rows(settings(objective="multi:softmax"), seen(1, 1, 2, 3), Memory(1 << 30))
    classes, matrix = checked.describe()
    (unused,) = checked.notes
    assert classes == "Classes: 4 (0 to 3)."
    assert unused.startswith("No row has class 0: ")
    assert matrix.startswith("Matrix: quantile, ")
    assert checked.classes == 4


def test_classes_that_the_job_sets_are_not_said_again() -> None:
    checked = check_rows(settings(objective="multi:softmax", num_class=4), seen(1, 1, 2, 3), Memory(1 << 30))
    [line] = checked.describe()
    assert line.startswith("Matrix: ")


def test_labels_that_do_not_fit_are_reported_before_too_little_memory() -> None:
    with pytest.raises(UserError, match="channel train has the labels 1, 2"):
        check_rows(settings(objective="binary:logistic"), seen(1, 2), Memory(0))
    with pytest.raises(PlatformError, match="use an instance with more memory"):
        check_rows(settings(objective="binary:logistic"), seen(0, 1), Memory(0))
