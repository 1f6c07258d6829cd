from __future__ import annotations

import pytest
import xgboost as xgb
from tests.unit.settings.parsed import mistake, mistakes, parsed, train

from smxgb.settings import booster_params


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            {"num_class": "3", "objective": "count:poisson"},
            "num_class=3 goes with multi:softmax and multi:softprob only",
        ),
        ({"objective": "binary:logistic", "num_class": "2"}, "not with objective=binary:logistic"),
        ({"objective": "reg:quantileerror"}, "needs quantile_alpha"),
        ({"objective": "reg:expectileerror"}, "needs expectile_alpha"),
        (
            {"objective": "reg:quantileerror", "quantile_alpha": "[0.9,0.1]"},
            "must ascend: write it as [0.1, 0.9]",
        ),
        (
            {"objective": "binary:logistic", "base_score": "1.5"},
            "base_score=1.5 is not allowed with objective=binary:logistic: it must be above 0 and below 1",
        ),
        (
            {"updater": "grow_colmaker,prune", "max_depth": "0"},
            "max_depth=0 (no limit) does not go with updater=grow_colmaker,prune",
        ),
        (
            {"updater": "grow_colmaker", "sampling_method": "gradient_based", "subsample": "0.5"},
            "sampling_method=gradient_based does not go with updater=grow_colmaker",
        ),
        ({"updater": "grow_colmaker,grow_colmaker"}, "names 2 that grow trees, and a tree is grown by one"),
        (
            {"objective": "reg:gamma", "base_score": "0"},
            "base_score=0 is not allowed with objective=reg:gamma: it must be above 0",
        ),
        (
            {"tree_method": "exact", "max_depth": "0"},
            "max_depth=0 (no limit) does not go with tree_method=exact",
        ),
        (
            {"tree_method": "exact", "sampling_method": "gradient_based", "subsample": "0.5"},
            "use tree_method=hist",
        ),
        ({"multi_strategy": "multi_output_tree", "tree_method": "approx"}, "use tree_method=hist"),
        ({"process_type": "update"}, "process_type=update changes an earlier model's trees"),
        ({"updater": "refresh"}, "updater=refresh changes trees and builds none"),
        ({"updater": "prune,grow_colmaker"}, "updater=prune changes trees and builds none"),
        ({"updater": "shotgun"}, "updater=shotgun does not go with booster=gbtree"),
        ({"booster": "gblinear", "updater": "grow_colmaker"}, "use shotgun or coord_descent"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_as_xgboost_does(
    raw: dict[str, object], words: str
) -> None:
    assert words in mistake(**raw)
    with pytest.raises(xgb.core.XGBoostError):
        train(dict(raw))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"objective": "survival:aft"}, ("needs label_lower_column", "needs label_upper_column")),
        (
            {"objective": "binary:logistic", "base_score": "0"},
            ("base_score=0 is not allowed with objective=binary:logistic: it must be above 0 and below 1",),
        ),
        ({"base_score": "[0.5, 0.5]"}, ("base_score has 2 numbers, and the model has 1 output: give one",)),
        (
            {"objective": "reg:quantileerror", "quantile_alpha": "0.1,0.9", "base_score": "1,2,3"},
            ("base_score has 3 numbers, and the model has 2 outputs",),
        ),
        ({"updater": "grow_histmaker,grow_quantile_histmaker"}, ("names 2 that grow trees",)),
        (
            {"multi_strategy": "multi_output_tree", "updater": "grow_quantile_histmaker,prune"},
            ("multi_output_tree does not go with updater=grow_quantile_histmaker,prune",),
        ),
        ({"multi_strategy": "multi_output_tree", "updater": "grow_histmaker"}, ("leave updater out",)),
        ({"categorical_columns": "1", "tree_method": "exact"}, ("tree_method=exact can't split categories",)),
        ({"categorical_columns": "1", "updater": "grow_colmaker"}, ("updater=grow_colmaker can't split",)),
        ({"enable_categorical": "true", "booster": "gblinear"}, ("use booster=gbtree",)),
        ({"label_upper_column": "2"}, ("label_upper_column goes with objective=survival:aft only",)),
        (
            {
                "objective": "survival:aft",
                "label_lower_column": "0",
                "label_upper_column": "1",
                "csv_weights": "1",
            },
            ("csv_weights needs the weights right after the label, and a job with label_lower_column",),
        ),
        (
            {"_num_cv_round": "3"},
            ("_num_cv_round repeats a cross validation, and there is none without _kfold",),
        ),
        ({"csv_weights": "1", "weight_column": "w"}, ("csv_weights and weight_column both say",)),
        (
            {"label_column": "y", "weight_column": "y"},
            ("label_column and weight_column are the same column 'y'",),
        ),
        (
            {"label_column": "y", "drop_columns": "a,y"},
            ("drop_columns holds 'y', which is the label_column",),
        ),
        ({"objective": "multi:softmax", "eval_metric": "f1_binary"}, ("use f1_macro",)),
        (
            {"tracker_port": "7890", "scheduler_port": "7890"},
            (
                "control_port and tracker_port both use port 7890: set tracker_port to another",
                "control_port and scheduler_port both use port 7890",
            ),
        ),
        (
            {"tracker_port": "7880", "max_restarts": "10", "scheduler_port": "7885"},
            (
                "control_port and tracker_port both use port 7890 (tracker_port takes one more port for each",
                "tracker_port and scheduler_port both use port 7885 (tracker_port takes one more port",
            ),
        ),
        (
            {"tracker_port": "8786"},
            ("tracker_port and scheduler_port both use port 8786: set scheduler_port to another one.",),
        ),
        (
            {"tracker_port": "65500", "max_restarts": "40"},
            ("and 65540 is no port: set tracker_port to 65495 or less.",),
        ),
        (
            {"dashboard": "true", "scheduler_port": "8787"},
            ("dashboard and scheduler_port both use port 8787",),
        ),
        (
            {"objective": "multi:softmax", "eval_metric": "auc", "group_column": "1"},
            ("metric auc is not for classes in groups",),
        ),
        ({"eval_metric": "quantile"}, ("metric quantile needs quantile_alpha",)),
        (
            {
                "objective": "reg:quantileerror",
                "quantile_alpha": "0.1,0.9",
                "eval_metric": "quantile,mse,mae",
            },
            ("metric mse is not for several predictions", "metric mae is not for several predictions"),
        ),
    ],
)
def test_settings_that_contradict_each_other_for_the_container_are_refused(
    raw: dict[str, object], words: tuple[str, ...]
) -> None:
    found = mistakes(**raw)
    assert len(found) == len(words)
    for text, expected in zip(found, words, strict=True):
        assert expected in text


@pytest.mark.parametrize(
    "raw",
    [
        {"objective": "multi:softprob"},
        {"scheduler_port": "8787"},
        {"tracker_port": "7889", "max_restarts": "0"},
        {"objective": "multi:softprob", "num_class": "3", "eval_metric": "auc"},
        {"tree_method": "exact", "grow_policy": "lossguide"},
        {"booster": "gblinear", "tree_method": "exact", "max_depth": "0"},
        {"rate_drop": "0.1", "one_drop": "1", "sample_type": "weighted"},
        {"booster": "dart", "rate_drop": "0.1", "normalize_type": "forest"},
        {"updater": "grow_quantile_histmaker,prune", "refresh_leaf": "0"},
        {"objective": "binary:logistic", "base_score": "0.01"},
        {"objective": "binary:logitraw", "base_score": "0"},
        {"tree_method": "exact", "updater": "grow_histmaker", "max_depth": "0"},
        {"objective": "multi:softprob", "num_class": "3", "base_score": "[0.2, 0.3, 0.5]"},
        {"max_depth": "0", "max_leaves": "0"},
        {"tree_method": "exact", "sampling_method": "gradient_based"},
        {"quantile_alpha": "0.5", "objective": "reg:absoluteerror", "eval_metric": "quantile,mae"},
    ],
)
def test_combinations_that_xgboost_takes_are_taken(raw: dict[str, object]) -> None:
    params = booster_params(parsed(**raw))
    classes = raw.get("objective") == "multi:softprob"
    label: list[float] | None = [0, 1, 2] * 20 if classes else None
    assert train(params | ({"num_class": 3} if classes else {}), label=label) == 3
