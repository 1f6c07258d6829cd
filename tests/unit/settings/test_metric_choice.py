from __future__ import annotations

from tests.unit.settings.parsed import mistake, parsed


def test_the_metrics_of_a_job_are_merged_in_a_fixed_order() -> None:
    job = parsed(
        objective="binary:logistic",
        eval_metric="logloss,auc,logloss",
        _tuning_objective_metric="validation:f1",
    )
    assert [metric.name for metric in job.metrics] == ["logloss", "auc", "f1"]
    assert job.monitored.name == "auc"


def test_the_early_stopping_metric_joins_the_others() -> None:
    job = parsed(objective="binary:logistic", eval_metric="logloss", early_stopping_metric="validation:auc")
    assert [metric.name for metric in job.metrics] == ["logloss", "auc"]
    assert job.monitored.name == "auc"


def test_without_metrics_the_objectives_own_is_logged() -> None:
    job = parsed(objective="reg:tweedie", tweedie_variance_power="1.2")
    assert [metric.name for metric in job.metrics] == ["tweedie-nloglik@1.2"]
    job = parsed(objective="rank:ndcg", lambdarank_pair_method="mean")
    assert job.monitored.name == "ndcg"


def test_a_tuning_metric_of_the_tuners_own_naming_is_no_mistake() -> None:
    job = parsed(_tuning_objective_metric="ObjectiveMetric")
    assert [metric.name for metric in job.metrics] == ["rmse"]
    assert job.notes[0].startswith(
        "_tuning_objective_metric='ObjectiveMetric' is no metric of this container"
    )


def test_a_metric_keeps_each_name_that_something_looks_for() -> None:
    job = parsed(
        objective="binary:logistic",
        eval_metric="error@0.5",
        _tuning_objective_metric="validation:error",
        early_stopping_metric="error@0.50",
    )
    assert [metric.name for metric in job.metrics] == ["error@0.5", "error", "error@0.50"]
    assert job.monitored.name == "error@0.50"


def test_early_stopping_by_the_training_rows_is_refused() -> None:
    assert mistake(early_stopping_metric="train-rmse") == (
        "early_stopping_metric='train-rmse' is a metric of the training rows, and early stopping watches the "
        "validation channel: set rmse."
    )


def test_a_tuned_metric_of_the_training_rows_must_be_logged() -> None:
    assert parsed(_tuning_objective_metric="train:rmse").notes == ()
    assert mistake(_tuning_objective_metric="train:rmse", eval_train="false") == (
        "the tuning job optimises 'train:rmse', and eval_train=false leaves it out of the log: leave out "
        "eval_train, or tune a metric of the validation channel."
    )


def test_a_misspelt_tuning_metric_is_refused() -> None:
    assert mistake(_tuning_objective_metric="validation:rmsee") == (
        "_tuning_objective_metric: there is no metric 'rmsee': did you mean rmse?"
    )
