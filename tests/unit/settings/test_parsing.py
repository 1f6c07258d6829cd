from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.settings.parsed import mistake, mistakes, parsed

from smxgb.errors import Mistakes, UserError
from smxgb.settings import booster_params, parse
from smxgb.settings.hyperparameters import TRAITS


@given(st.dictionaries(st.sampled_from(list(TRAITS)), st.text()))
def test_any_text_is_taken_or_refused_in_words(raw: dict[str, str]) -> None:
    try:
        parse(raw)
    except UserError as error:
        assert all(text.endswith((".", "?")) for text in error.mistakes)  # noqa: PT017


@pytest.mark.parametrize("text", ["null", "", None])
def test_a_null_does_not_stand_for_the_number_of_rounds(text: object) -> None:
    expected = "num_round is missing: set it to a whole number, 1 or more."
    assert mistake(num_round=text) == expected
    with pytest.raises(UserError, match=expected):
        parse({})


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("num_round", "0", "it must be a whole number, 1 or more."),
        ("num_round", "1_000", "it must be a whole number, 1 or more."),
        ("num_round", "10.5", "it must be a whole number, 1 or more."),
        ("num_round", "ten", "it must be a whole number, 1 or more."),
        ("num_round", "1e99", "it must be a whole number, 1 or more."),
        ("num_round", "9" * 5000, "it must be a whole number, 1 or more."),
        ("max_depth", "true", "it must be a whole number, 0 or more."),
        ("max_depth", True, "it must be a whole number, 0 or more."),
        ("max_depth", "-1", "it must be a whole number, 0 or more."),
        ("max_depth", "2147483648", "it must be a whole number, 0 or more."),
        ("max_depth", "[6]", "it must be a whole number, 0 or more."),
        ("verbosity", "4", "it must be a whole number from 0 to 3."),
        ("eta", "3", "it must be a number from 0 to 1."),
        ("eta", "nan", "it must be a number from 0 to 1."),
        ("eta", "0,3", "it must be a number from 0 to 1."),
        ("gamma", "inf", "it must be a number, 0 or more."),
        ("gamma", "1e400", "it must be a number, 0 or more."),
        ("gamma", "1e39", "it must be a number, 0 or more."),
        ("gamma", "-0.1", "it must be a number, 0 or more."),
        ("gamma", "\u0661", "it must be a number, 0 or more."),
        ("subsample", "0", "it must be a number above 0, up to 1."),
        ("scale_pos_weight", "0", "it must be a number above 0."),
        ("tweedie_variance_power", "2", "it must be a number above 1 and below 2."),
        ("csv_weights", "maybe", "it must be true or false."),
        ("csv_weights", "2", "it must be true or false."),
        ("booster", "gbtre", "did you mean gbtree?"),
        ("booster", "xyzzy", "it must be one of gbtree, gblinear, dart."),
        ("objective", "binary:logstic", "did you mean binary:logistic?"),
        ("updater", "grow_colmakr", "did you mean grow_colmaker?"),
        ("num_class", "1", "it must be a whole number, 2 or more."),
        ("quantile_alpha", "[0.1, 1.5]", "it must be a number from 0 to 1, or a list of such."),
        ("quantile_alpha", '["x"]', "it must be a number from 0 to 1, or a list of such."),
        (
            "drop_columns",
            '{"a": 1}',
            "it must be a column's name, or its index (negative: from the end), or a list of such.",
        ),
        (
            "csv_delimiter",
            "ab",
            "it must be auto, tab, or one character that is no letter, digit, quote, dot or sign.",
        ),
        (
            "csv_delimiter",
            "7",
            "it must be auto, tab, or one character that is no letter, digit, quote, dot or sign.",
        ),
        (
            "monotone_constraints",
            "(1,2)",
            'it must be -1, 0 or 1 for each feature, as (1,0,-1) or {"age": 1}.',
        ),
        (
            "monotone_constraints",
            "(true,0)",
            'it must be -1, 0 or 1 for each feature, as (1,0,-1) or {"age": 1}.',
        ),
        (
            "monotone_constraints",
            '{"age": 3}',
            'it must be -1, 0 or 1 for each feature, as (1,0,-1) or {"age": 1}.',
        ),
        ("label_column", '["y1","y2"]', "it must be a column's name, or its index (negative: from the end)."),
        ("csv_header", "maybe", "it must be one of auto, true, false."),
        ("control_port", "80", "it must be a whole number from 1024 to 65535."),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(
    name: str, text: object, allowed: str | None
) -> None:
    expected = mistake(**{name: text})
    assert expected.startswith(f"{name}=")
    assert expected.endswith(f" is not allowed: {allowed}")
    assert len(expected) < 200


def test_all_mistakes_come_together_in_one_error() -> None:
    found = mistakes(
        eta="3",
        objective="binary:logstic",
        max_dept="3",
        eval_metric="acuracy,f1",
        alpha="x",
    )
    assert found == (
        "objective='binary:logstic' is not allowed: did you mean binary:logistic?",
        "eta='3' is not allowed: it must be a number from 0 to 1.",
        "alpha='x' is not allowed: it must be a number, 0 or more.",
        "eval_metric: there is no metric 'acuracy': did you mean accuracy?",
        "max_dept is not a hyperparameter: did you mean max_depth?",
    )


def test_a_mistake_hides_no_other_but_is_told_once() -> None:
    assert mistakes(objective="reg:quantileerror", quantile_alpha="2") == (
        "quantile_alpha='2' is not allowed: it must be a number from 0 to 1, or a list of such.",
    )


def test_mistakes_may_be_taken_together_with_those_of_the_rest_of_the_job() -> None:
    mistakes = Mistakes()
    found = parse({"num_round": "5", "max_depth": "x", "eta": "0.1"}, mistakes)
    assert [*mistakes] == ["max_depth='x' is not allowed: it must be a whole number, 0 or more."]
    assert (found.settings.max_depth, found.settings.eta) == (None, 0.1)


def test_an_ordinary_job_is_parsed_without_xgboost() -> None:
    code = """
import sys
from smxgb.settings import parse
parse({"num_round": "5", "objective": "binary:logistic", "eval_metric": "auc", "silent": "1"})
sys.exit(bool({"numpy", "pandas", "pyarrow", "xgboost"} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_absent_parameters_of_xgboost_are_left_to_xgboost_but_for_the_objective() -> None:
    assert booster_params(parsed()) == {"seed_per_iteration": 1, "objective": "reg:squarederror"}


def test_the_same_seed_gives_the_same_trees_whether_resumed_or_not() -> None:
    params = booster_params(parsed(seed="7", subsample="0.5", colsample_bynode="0.5"))
    rows = np.random.default_rng(0).random((200, 5), dtype=np.float32)
    matrix = xgb.DMatrix(rows, label=rows[:, 0], nthread=1)
    whole = xgb.Booster(params, cache=[matrix])
    for number in range(6):
        whole.update(matrix, number)
        if number == 2:
            half = bytearray(whole.save_raw())
    resumed = xgb.Booster(params, cache=[matrix], model_file=half)
    for number in range(3, 6):
        resumed.update(matrix, number)
    assert resumed.get_dump() == whole.get_dump()


def test_the_users_choice_of_seed_per_iteration_holds() -> None:
    assert booster_params(parsed(seed_per_iteration="false"))["seed_per_iteration"] == 0
