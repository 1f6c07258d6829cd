"""Bad settings: what SageMaker shows as the reason of the failure. One of each kind is a whole job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.mistakes import NAMED, Mistake, assert_fails

if TYPE_CHECKING:
    from pathlib import Path

TABLE = {
    "no number of rounds": Mistake(
        "UserError: num_round is missing: set it to a whole number, 1 or more.",
        {"num_round": None},
        whole=True,
    ),
    "a word for a number": Mistake(
        "UserError: num_round='ten' is not allowed: it must be a whole number, 1 or more.",
        {"num_round": "ten"},
    ),
    "half a round": Mistake(
        "UserError: num_round='10.5' is not allowed: it must be a whole number, 1 or more.",
        {"num_round": 10.5},
    ),
    "no round at all": Mistake(
        "UserError: num_round='0' is not allowed: it must be a whole number, 1 or more.", {"num_round": 0}
    ),
    "a number beyond its range": Mistake(
        "UserError: eta='3' is not allowed: it must be a number from 0 to 1.", {"eta": 3}
    ),
    "a share of nothing": Mistake(
        "UserError: subsample='0' is not allowed: it must be a number above 0, up to 1.", {"subsample": 0}
    ),
    "a misspelt setting": Mistake(
        "UserError: learnin_rate is not a hyperparameter: did you mean learning_rate?",
        {"learnin_rate": 0.1},
    ),
    "another library's name": Mistake(
        "UserError: 2 mistakes. 1. num_round is missing: set it to a whole number, 1 or more.",
        {"num_round": None, "n_estimators": 10},
    ),
    "two values of one setting": Mistake(
        "UserError: eta='0.1' and learning_rate='0.2' are two values of one setting: keep one of "
        "the two names.",
        {"eta": 0.1, "learning_rate": 0.2},
    ),
    "a misspelt objective": Mistake(
        "UserError: objective='binary:logistc' is not allowed: did you mean binary:logistic?",
        {"objective": "binary:logistc"},
    ),
    "an objective that is none": Mistake(
        "UserError: objective='classification' is not allowed: it must be one of reg:squarederror, "
        "reg:squaredlogerror, reg:logistic, reg:pseudohubererror, reg:absoluteerror, "
        "reg:quantileerror, reg:expectileerror, reg:gamma, reg:tweedie, count:poisson, "
        "binary:logistic, binary:logitraw, binary:hinge, multi:softmax, multi:softprob, "
        "rank:pairwise, rank:ndcg, rank:map, survival:aft, survival:cox.",
        {"objective": "classification"},
    ),
    "what XGBoost sets itself": Mistake(
        "UserError: num_feature is not a hyperparameter: XGBoost sets it itself; leave it out.",
        {"num_feature": 4},
    ),
    "a value that XGBoost refuses": Mistake(
        "UserError: max_cached_hist_node='many' is not allowed: XGBoost says: Invalid Parameter "
        "format for max_cached_hist_node expect long (non-negative) but value='many'.",
        {"max_cached_hist_node": "many"},
        whole=True,
    ),
    "a misspelt metric": Mistake(
        "UserError: eval_metric: there is no metric 'accurracy': did you mean accuracy?",
        {"eval_metric": "rmse,accurracy"},
    ),
    "a metric of another objective": Mistake(
        "UserError: eval_metric: metric f1 is for binary and multi-class, not for reg:squarederror:"
        " use rmse.",
        {"eval_metric": "f1"},
    ),
    "a binary metric for classes": Mistake(
        "UserError: eval_metric: metric precision is for binary, not for multi:softmax: use "
        "precision_macro or precision_micro.",
        {"objective": "multi:softmax", "num_class": 3, "eval_metric": "precision"},
    ),
    "a metric's parameter": Mistake(
        "UserError: eval_metric: metric 'ndcg@0' is not allowed: after @ stands a whole number, 1 "
        "or more, as in ndcg@10.",
        {"objective": "rank:ndcg", "group_column": 2, "eval_metric": "ndcg@0"},
    ),
    "a metric without its parameter": Mistake(
        "UserError: eval_metric: metric ams needs a parameter: a number, 0 or more, as in ams@0.15.",
        {"objective": "binary:logistic", "eval_metric": "ams"},
    ),
    "classes for a binary objective": Mistake(
        "UserError: num_class=2 goes with multi:softmax and multi:softprob only, not with "
        "objective=binary:logistic: leave it out, or change the objective.",
        {"objective": "binary:logistic", "num_class": 2},
    ),
    "quantiles that are not given": Mistake(
        "UserError: objective=reg:quantileerror needs quantile_alpha: a number from 0 to 1, or a "
        "list, as [0.1, 0.9].",
        {"objective": "reg:quantileerror"},
    ),
    "quantiles out of order": Mistake(
        "UserError: quantile_alpha must ascend: write it as [0.1, 0.9].",
        {"objective": "reg:quantileerror", "quantile_alpha": "[0.9, 0.1]"},
    ),
    "survival without bounds": Mistake(
        "UserError: 2 mistakes. 1. objective=survival:aft needs label_lower_column: a column's name"
        " or index.",
        {"objective": "survival:aft"},
    ),
    "a bound without survival": Mistake(
        "UserError: label_lower_column goes with objective=survival:aft only, not with "
        "reg:squarederror: leave it out (or name it in drop_columns).",
        {"label_lower_column": 1},
    ),
    "weights of rows with groups": Mistake(
        "UserError: with group_column XGBoost reads one weight for each group, and "
        "objective=reg:squarederror needs one for each row: leave out group_column or weight_column.",
        {"group_column": 1, "weight_column": 2},
        NAMED,
    ),
    "ranking without groups": Mistake(
        "UserError: objective=rank:ndcg needs group_column: the name or index of the column that "
        "says to which query a row belongs.",
        {"objective": "rank:ndcg"},
    ),
    "a first prediction that can't be": Mistake(
        "UserError: base_score=2 is not allowed with objective=binary:logistic: it must be above 0 "
        "and below 1; change it or leave it out.",
        {"objective": "binary:logistic", "base_score": 2},
    ),
    "exact without a depth": Mistake(
        "UserError: max_depth=0 (no limit) does not go with tree_method=exact: set a depth, or use "
        "tree_method=hist.",
        {"tree_method": "exact", "max_depth": 0},
    ),
    "updating no model": Mistake(
        "UserError: process_type=update changes an earlier model's trees, and a job has none: leave it out, "
        "or give the model in a channel 'model'.",
        {"process_type": "update", "updater": "refresh"},
    ),
    "an updater of another booster": Mistake(
        "UserError: updater=shotgun does not go with booster=gbtree: use grow_quantile_histmaker, "
        "grow_histmaker or grow_colmaker, or leave it out.",
        {"updater": "shotgun"},
    ),
    "weights in two places": Mistake(
        "UserError: csv_weights and weight_column both say where the weights are: keep one of them.",
        {"csv_weights": 1, "weight_column": 2},
    ),
    "a column with two roles": Mistake(
        "UserError: label_column and weight_column are the same column 0: give each its own.",
        {"label_column": 0, "weight_column": 0},
    ),
    "a direction that is none": Mistake(
        "UserError: monotone_constraints='(1,2)' is not allowed: it must be -1, 0 or 1 for each "
        'feature, as (1,0,-1) or {"age": 1}.',
        {"monotone_constraints": "(1,2)"},
    ),
    "more directions than features": Mistake(
        "UserError: monotone_constraints has 3 directions for 2 features: give one for each "
        "feature, without the label, or name the features.",
        {"monotone_constraints": "(1,0,-1)"},
    ),
    "a direction of no feature": Mistake(
        "UserError: monotone_constraints: there is no feature 'agee'; did you mean 'age'?",
        {"monotone_constraints": '{"agee": 1}'},
        NAMED,
        whole=True,
    ),
    "a group of no features": Mistake(
        "UserError: interaction_constraints: there is no feature 2; the 2 features count from 0 to "
        "1, without the label.",
        {"interaction_constraints": "[[0, 2]]"},
    ),
    "a delimiter of two characters": Mistake(
        "UserError: csv_delimiter='ab' is not allowed: it must be auto, tab, or one character that "
        "is no letter, digit, quote, dot or sign.",
        {"csv_delimiter": "ab"},
    ),
    "a GPU that is not there": Mistake(
        "UserError: device='cuda' needs a GPU and this host has none: use an instance with a GPU, or "
        "set device=cpu.",
        {"device": "cuda"},
        whole=True,
    ),
    "a GPU that is not there, the old way": Mistake(
        "UserError: tree_method='gpu_hist' needs a GPU and this host has none: use an instance with "
        "a GPU, or set device=cpu.",
        {"tree_method": "gpu_hist"},
    ),
    "a method without a GPU version": Mistake(
        "UserError: tree_method=exact does not run on a GPU: use device=cpu, or use tree_method=hist.",
        {"tree_method": "exact", "device": "cuda"},
    ),
    "early stopping by no metric": Mistake(
        "UserError: early_stopping_metric: there is no metric 'acuracy': did you mean accuracy?",
        {"early_stopping_rounds": 5, "early_stopping_metric": "acuracy"},
        validation=NAMED,
    ),
    "tuning without validation": Mistake(
        "UserError: the tuning job optimises 'validation:rmse', but there is no 'validation' "
        "channel: add one.",
        {"_tuning_objective_metric": "validation:rmse"},
    ),
    "tuning by a misspelt metric": Mistake(
        "UserError: _tuning_objective_metric: there is no metric 'rsme': did you mean rmse?",
        {"_tuning_objective_metric": "validation:rsme"},
        validation=NAMED,
    ),
    "cross validation": Mistake(
        "UserError: _kfold (cross validation) is not supported yet: leave it out and give a "
        "validation channel.",
        {"_kfold": 5},
    ),
    "Dask": Mistake(
        "UserError: use_dask_gpu_training=true needs a GPU and this host has none: use an instance with "
        "GPUs, or device=cpu to do the same on its processors.",
        {"use_dask_gpu_training": "true"},
    ),
    "a training script": Mistake(
        "UserError: sagemaker_program (a training script, entry_point) trains as it likes, and nothing of "
        "it can be checked beforehand: leave it out to check the settings and data of the built-in training.",
        {"sagemaker_program": "train.py"},
    ),
    "repeats without a cross validation": Mistake(
        "UserError: _num_cv_round repeats a cross validation, and there is none without _kfold: "
        "leave it out.",
        {"_num_cv_round": 3},
    ),
    "settings and channels at once": Mistake(
        "UserError: 2 mistakes. 1. learnin_rate is not a hyperparameter: did you mean learning_rate?",
        {"learnin_rate": 0.1, "_tuning_objective_metric": "validation:rmse"},
    ),
    "several at once": Mistake(
        "UserError: 3 mistakes. 1. num_round='ten' is not allowed: it must be a whole number, 1 or more.",
        {"num_round": "ten", "max_depht": 3, "objective": "binary:logistic", "eval_metric": "r3"},
        whole=True,
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_setting_ends_the_job_with_one_plain_sentence(name: str, tmp_path: Path) -> None:
    assert_fails(TABLE[name], tmp_path)
