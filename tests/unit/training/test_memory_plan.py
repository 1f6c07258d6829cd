from __future__ import annotations

import re

import numpy as np
import pytest
import xgboost as xgb
from tests.threads import by_all

from smxgb.errors import JobError, PlatformError
from smxgb.rows import FLAGS, Group
from smxgb.rows.summary import Shape
from smxgb.settings import parse
from smxgb.training.memory_needs import THREADS, histogram_bytes
from smxgb.training.memory_plan import MIB, UNCERTAINTY, Memory, Plan, choose_matrix, choose_plan, make_plans

ROWS = 1_000_000


def needed(
    shapes: dict[str, Shape] | None = None, classes: int | None = None, reading: int = 0, **settings: object
) -> int:
    """Return the bytes that a plan for train, and other channels, says are needed."""
    parameters = parse({"num_round": 1, "eval_metric": "rmse", **settings})
    shapes = shapes or {"train": Shape(ROWS, 28)}
    return make_plans(parameters, shapes, Memory(1 << 40), classes=classes, reading=reading)[0].needed.host


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "quantile"),
        ({"booster": "dart", "tree_method": "hist"}, "quantile"),
        ({"tree_method": "auto"}, "quantile"),
        ({"tree_method": "approx"}, "iterated"),
        ({"booster": "gblinear"}, "iterated"),
        ({"booster": "gblinear", "updater": "shotgun"}, "iterated"),
        ({"tree_method": "exact"}, "whole"),
        ({"updater": "grow_colmaker,prune"}, "whole"),
        ({"updater": "grow_quantile_histmaker,prune"}, "quantile"),
        ({"updater": "grow_histmaker"}, "iterated"),
        ({"updater": "grow_histmaker", "tree_method": "exact"}, "iterated"),
    ],
    ids=str,
)
def test_each_way_to_train_has_its_matrix(settings: dict[str, str], kind: str) -> None:
    assert choose_matrix(parse({"num_round": 1, **settings}).settings) == kind


CSV_READING = 33 * MIB
"""What reading a CSV file of 28 columns takes (`rows.reading_bytes`); the measured peaks hold it."""


@pytest.mark.parametrize(
    ("measured", "missing", "classes", "settings"),
    [
        (85, 0, None, {"eval_metric": "auc"}),
        (68, 0, None, {"eval_metric": "logloss"}),
        (73, 0, None, {"eval_metric": "accuracy"}),
        (95, 0, None, {"eval_metric": "auc", "max_bin": 512}),
        (92, 0.3, None, {"eval_metric": "auc"}),
        (190, 0, None, {"eval_metric": "auc", "tree_method": "approx"}),
        (289, 0, None, {"eval_metric": "auc", "tree_method": "exact"}),
        (237, 0.3, None, {"eval_metric": "auc", "tree_method": "exact"}),
        (163, 0, None, {"eval_metric": "auc", "booster": "gblinear"}),
        (120, 0, 5, {"eval_metric": "accuracy"}),
    ],
    ids=str,
)
def test_a_plan_is_as_near_to_the_memory_of_real_jobs_as_it_says(
    measured: int, missing: float, classes: int | None, settings: dict[str, object]
) -> None:
    """The peaks, in MiB, are those of `benchmarks/memory.py`: 400,000 rows of 28 columns, 2 cores."""
    objective = "multi:softprob" if classes else "binary:logistic"
    shapes = {"train": Shape(400_000, 28, missing)}
    planned = needed(shapes, classes, CSV_READING, objective=objective, **settings) / MIB
    assert (1 - UNCERTAINTY) * planned <= measured <= (1 + UNCERTAINTY) * planned


@pytest.mark.parametrize(
    ("measured", "settings"), [(264, {"tree_method": "approx"}), (216, {"booster": "gblinear"})], ids=str
)
def test_a_matrix_that_is_read_in_pages_needs_no_memory_for_the_others(
    measured: int, settings: dict[str, object]
) -> None:
    """The peaks are those of 2,000,000 rows of 28 columns."""
    given = {"objective": "binary:logistic", "eval_metric": "auc", **settings}
    planned = needed({"train": Shape(2_000_000, 28)}, None, CSV_READING, **given) / MIB
    assert (1 - UNCERTAINTY) * planned <= measured <= (1 + UNCERTAINTY) * planned


def test_more_columns_and_more_bins_need_more() -> None:
    wide = needed({"train": Shape(ROWS, 100)})
    assert needed() < needed(max_bin=512) < needed(max_bin=100_000, max_depth=1) < wide * 2
    assert needed() < wide


def test_validation_rows_need_less_than_those_that_are_trained_on() -> None:
    both = needed({"train": Shape(ROWS, 28), "validation": Shape(ROWS, 28)})
    assert needed() < both < 2 * needed()


def test_each_feature_of_sparse_rows_needs_memory_of_its_own() -> None:
    few, many = (
        needed({"train": Shape(10, columns, missing=1 - 5 / columns, sparse=True)})
        for columns in (1000, 1_001_000)
    )
    assert many - few > 500 * MIB


def test_more_outputs_need_more() -> None:
    few, many = (
        needed(classes=count, objective="multi:softprob", eval_metric="mlogloss") for count in (2, 50)
    )
    assert few < many
    assert (
        needed(objective="reg:quantileerror", quantile_alpha="[0.1,0.9]", eval_metric="quantile") > needed()
    )
    assert needed(objective="reg:absoluteerror", quantile_alpha="[0.1,0.9]") == needed()


def test_missing_values_widen_the_index() -> None:
    some = needed({"train": Shape(ROWS, 28, missing=0.1)})
    most = needed({"train": Shape(ROWS, 28, missing=0.9)})
    assert needed() < some
    assert most < some


def test_the_line_of_the_log_has_a_range_around_the_estimate() -> None:
    line = Plan("quantile", Memory(1000 * MIB), Memory(4000 * MIB)).describe()
    assert line == (
        "Matrix: quantile, about 1,000 MiB (between 700 and 1,300 MiB) of the 3.9 GiB of memory that are "
        "free."
    )


def test_a_job_that_does_not_fit_is_refused_with_the_numbers() -> None:
    Plan("quantile", Memory(100 * MIB), Memory(100 * MIB)).check()
    with pytest.raises(PlatformError, match=re.escape("needs about 101 MiB of memory and 100 MiB are free")):
        Plan("quantile", Memory(101 * MIB), Memory(100 * MIB)).check()
    with pytest.raises(PlatformError, match=re.escape("needs about 47 MiB of memory and 46 MiB are free")):
        Plan("quantile", Memory(46 * MIB + 2), Memory(46 * MIB + 1)).check()


def plans(host: int, disk: int, **settings: object) -> list[Plan]:
    parameters = parse({"num_round": 1, "eval_metric": "rmse", **settings})
    shapes = {"train": Shape(ROWS, 28)}
    return make_plans(parameters, shapes, Memory(host, disk=disk), classes=None, reading=0)


def test_rows_go_to_disk_only_where_they_do_not_fit_into_memory() -> None:
    in_memory, on_disk = plans(0, 0)
    assert (in_memory.kind, on_disk.kind) == ("quantile", "external")
    assert on_disk.needed.host < 0.6 * in_memory.needed.host
    assert on_disk.needed.disk == 68 * ROWS
    for host, disk, kind in (
        (in_memory.needed.host, 1 << 40, "quantile"),
        (in_memory.needed.host, 0, "quantile"),
        (in_memory.needed.host - 1, 1 << 40, "external"),
        (on_disk.needed.host, 68 * ROWS, "external"),
    ):
        assert choose_plan(plans(host, disk), list).kind == kind
    with pytest.raises(
        PlatformError, match=r"needs about \d+ MiB of memory, even with its matrix on disk, and"
    ):
        choose_plan(plans(on_disk.needed.host - 1, 1 << 40), list)
    with pytest.raises(PlatformError, match="its cache needs about 65 MiB of disk, of which 64 MiB are free"):
        choose_plan(plans(on_disk.needed.host, 68 * ROWS - 1), list)


@pytest.mark.parametrize(
    "settings", [{"tree_method": "approx"}, {"tree_method": "exact"}, {"booster": "gblinear"}]
)
def test_only_hist_can_go_on_from_disk(settings: dict[str, object]) -> None:
    [plan] = plans(1 << 40, 1 << 40, **settings)
    assert not choose_plan([plan], list).has_slower
    assert (plan.needed.disk > 0) is (settings != {"tree_method": "exact"})


def test_a_plan_that_ran_out_of_memory_is_not_taken_again() -> None:
    both = plans(1 << 40, 1 << 40)
    assert choose_plan(both, list).has_slower
    second = choose_plan(both, list, given_up=1)
    assert (second.kind, second.has_slower) == ("external", False)


def test_all_workers_take_one_plan_or_none() -> None:
    little, much, nothing = plans(100 * MIB, 1 << 40), plans(1 << 40, 1 << 40), plans(0, 0)

    def chosen(of_workers: list[list[Plan]]) -> list[object]:
        def choose(group: Group) -> tuple[str, ...]:
            def fit(fits: list[bool]) -> list[bool]:
                return [all(each) for each in zip(*group.gather(fits, FLAGS), strict=True)]

            try:
                return (choose_plan(of_workers[group.rank], fit).kind,)
            except JobError as error:
                return (error.origin,)

        return list(by_all(choose, ["a", "b"]))

    assert chosen([much, much]) == [("quantile",), ("quantile",)]
    assert chosen([much, little]) == [("external",), ("external",)]
    assert chosen([much, nothing]) == [("elsewhere",), ("here",)]


def test_the_histograms_of_a_deep_tree_over_many_columns_are_refused_with_the_number() -> None:
    parameters = parse({"num_round": 1, "max_depth": 12})
    shapes = {"train": Shape(ROWS, 1000)}
    memory = Memory(8 << 30, disk=1 << 40)
    deep = make_plans(parameters, shapes, memory, classes=None, reading=0)
    with pytest.raises(
        PlatformError, match=r"\d+,\d+ MiB of it for the histograms of a tree: lower max_depth"
    ):
        choose_plan(deep, list)
    # Columns with few different values have few bins.
    few = make_plans(parameters, shapes, memory, classes=None, reading=0, bins=3000)
    assert choose_plan(few, list).kind == "quantile"


@pytest.mark.parametrize("rows", [4_000, 60_000])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 6},
        {"max_depth": 10},
        {"max_depth": 14},
        {"max_depth": 12, "min_child_weight": 20},
        {"max_depth": 0, "max_leaves": 40, "grow_policy": "lossguide"},
    ],
    ids=str,
)
def test_a_tree_has_about_as_many_histograms_as_planned(rows: int, settings: dict[str, object]) -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(rows, 20))
    label = x[:, 0] + np.sin(3 * x[:, 1]) + generator.logistic(size=rows) > 0
    booster = xgb.train({"objective": "binary:logistic", **settings}, xgb.QuantileDMatrix(x, label), 1)
    depths = [len(line) - len(line.lstrip("\t")) for line in booster.get_dump()[0].splitlines()]
    deepest = settings["max_depth"] or len(depths)
    counted = sum(depth < int(str(deepest)) for depth in depths)
    taken = histogram_bytes(parse({"num_round": 1, **settings}).settings, 1, rows, 1) / 16 - THREADS
    assert (1 - UNCERTAINTY) * taken <= counted <= (1 + UNCERTAINTY) * taken
