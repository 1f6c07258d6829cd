from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given
from hypothesis import strategies as st

from smxgb.errors import Mistakes, UserError
from smxgb.settings import Hyperparameters, Parsed, booster_params, parse, resolve_constraints, upstream
from smxgb.settings.declaration import OBSOLETE, name_of, trait_of
from smxgb.settings.objectives import Objective

UPSTREAM_FIELDS = [field for field in Hyperparameters.model_fields if trait_of(field).use == "xgboost"]
LATER_FIELDS = [field for field in Hyperparameters.model_fields if trait_of(field).use == "later"]


def parsed(**raw: object) -> Parsed:
    return parse({"num_round": "10", **raw})


def setting(**raw: object) -> object:
    """Return the value of the one setting that is given."""
    (name,) = raw
    fields = {name_of(field): field for field in Hyperparameters.model_fields}
    fields |= {alias: field for field in UPSTREAM_FIELDS for alias in trait_of(field).aliases}
    return getattr(parsed(**raw).settings, fields[name])


def mistakes(**raw: object) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        parsed(**raw)
    return caught.value.mistakes


def mistake(**raw: object) -> str:
    (text,) = mistakes(**raw)
    return text


def train(params: dict[str, object], label: list[float] | None = None) -> None:
    rows = np.random.default_rng(0).random((60, 3), dtype=np.float32)
    matrix = xgb.DMatrix(rows, label=label or (rows[:, 0] > 0.5) + 0.0, nthread=1)
    with xgb.config_context(verbosity=0):
        booster = xgb.Booster({**params, "nthread": 1}, cache=[matrix])
        for number in range(3):
            booster.update(matrix, number)


# Encodings and spellings


def test_the_settings_of_a_typical_notebook_are_taken_unchanged() -> None:
    job = parse(
        {
            "objective": "reg:linear",
            "silent": "0",
            "num_round": "50",
            "max_depth": "5",
            "eta": "0.2",
            "gamma": "4",
            "min_child_weight": "6",
            "subsample": "0.7",
        }
    )
    assert booster_params(job) == {
        "objective": "reg:squarederror",
        "verbosity": 1,
        "max_depth": 5,
        "eta": 0.2,
        "gamma": 4.0,
        "min_child_weight": 6.0,
        "subsample": 0.7,
        "seed_per_iteration": 1,
    }
    assert job.settings.num_round == 50
    assert job.notes == (
        "objective=reg:linear is an old name: taken as reg:squarederror.",
        "silent='0' is an old name: taken as verbosity=1.",
    )


VALUES = st.fixed_dictionaries(
    {"num_round": st.integers(1, 4000)},
    optional={
        "objective": st.sampled_from(["reg:squarederror", "binary:logistic"]),
        "max_depth": st.integers(0, 20),
        "eta": st.floats(0, 1),
        "gamma": st.floats(0, 1e30),
        "seed": st.integers(-(2**62), 2**62),
        "csv_weights": st.booleans(),
        "eval_metric": st.lists(st.sampled_from(["rmse", "mae", "error@0.7"]), min_size=1, unique=True),
        "drop_columns": st.lists(st.integers(4, 50), min_size=1),
        "interaction_constraints": st.lists(st.lists(st.integers(0, 9), min_size=1), min_size=1),
        "label_column": st.integers(-3, 3),
    },
)


@given(VALUES)
def test_both_encodings_and_plain_json_values_mean_the_same(values: dict[str, object]) -> None:
    plain = parse({name: str(value) for name, value in values.items()})
    assert parse({name: json.dumps(value) for name, value in values.items()}) == plain
    assert parse({name: json.dumps(json.dumps(value)) for name, value in values.items()}) == plain
    assert parse(values) == plain


@given(
    st.dictionaries(st.sampled_from([name_of(field) for field in Hyperparameters.model_fields]), st.text())
)
def test_any_text_is_taken_or_refused_in_words(raw: dict[str, str]) -> None:
    try:
        parse(raw)
    except UserError as error:
        assert all(text.endswith((".", "?")) for text in error.mistakes)  # noqa: PT017


@pytest.mark.parametrize("text", ["6", "6.0", " 6 ", '"6"', '"6.0"', "+6", "6e0", "'6'", 6, 6.0])
def test_a_whole_number_in_any_spelling(text: object) -> None:
    assert setting(max_depth=text) == 6


@pytest.mark.parametrize("text", ["0.001", "1e-3", " .001 ", '"0.001"', "1E-3", "+.1e-2", 0.001])
def test_a_number_in_any_spelling(text: object) -> None:
    assert setting(eta=text) == 0.001


@pytest.mark.parametrize(
    "text", ["true", "True", "TRUE", "1", '"true"', '"True"', "yes", "on", "1.0", True, 1]
)
def test_true_in_any_spelling(text: object) -> None:
    assert setting(csv_weights=text) is True


@pytest.mark.parametrize("text", ["false", "False", "0", '"false"', "no", "off", False, 0])
def test_false_in_any_spelling(text: object) -> None:
    assert setting(eval_train=text) is False


@pytest.mark.parametrize("text", ["hist", "Hist", " HIST ", '"hist"', "'hist'"])
def test_a_choice_in_any_spelling(text: str) -> None:
    assert setting(tree_method=text) == "hist"


@pytest.mark.parametrize(
    "text",
    [
        "auc,logloss",
        " auc , logloss ",
        '["auc", "logloss"]',
        "['auc','logloss']",
        "('auc', 'logloss')",
        "[auc, logloss]",
        '"auc,logloss"',
        '"[\\"auc\\", \\"logloss\\"]"',
        "auc,,logloss",
        ["auc", "logloss"],
    ],
)
def test_a_list_in_any_spelling(text: object) -> None:
    assert setting(eval_metric=text) == ("auc", "logloss")


@pytest.mark.parametrize("text", [None, "", " ", "null", "None", "none", '"null"', '""', "NULL"])
@pytest.mark.parametrize("name", ["max_depth", "objective", "label_column", "eval_metric", "csv_header"])
def test_a_null_in_any_spelling_leaves_a_setting_at_its_default(name: str, text: object) -> None:
    assert parsed(**{name: text}) == parsed()


@pytest.mark.parametrize("text", ["null", "", None])
def test_a_null_does_not_stand_for_the_number_of_rounds(text: object) -> None:
    expected = "num_round is missing: set it to a whole number, 1 or more."
    assert mistake(num_round=text) == expected
    with pytest.raises(UserError, match=expected):
        parse({})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("price", "price"),
        ('"price"', "price"),
        ("1.5", "1.5"),
        ("true", "true"),
        ('"3"', 3),
        ("a,b", "a,b"),
    ],
)
def test_a_column_is_an_index_or_a_name(text: str, value: object) -> None:
    assert setting(label_column=text) == value


def test_columns_are_listed_by_index_and_name() -> None:
    assert setting(drop_columns="0,-1,id") == (0, -1, "id")
    assert setting(drop_columns='["first, last", 3]') == ("first, last", 3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (",", ","),
        (";", ";"),
        ("\t", "\t"),
        ("\\t", "\t"),
        ("tab", "\t"),
        ('"\\t"', "\t"),
        (" ", " "),
        ("|", "|"),
        ("auto", "auto"),
        ('";"', ";"),
        ("", "auto"),
        (None, "auto"),
        ("none", "auto"),
    ],
)
def test_a_delimiter_is_one_character_which_may_be_a_blank(text: object, value: str) -> None:
    assert setting(csv_delimiter=text) == value


@pytest.mark.parametrize("text", ["auto", "true", "True", True, "1", "false"])
def test_a_choice_that_holds_true_and_false_takes_their_spellings(text: object) -> None:
    expected = {"auto": "auto", "false": "false"}.get(str(text), "true")
    assert setting(csv_header=text) == expected


# What is refused


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
        checkpoint_keep="9",
        alpha="x",
    )
    assert found == (
        "objective='binary:logstic' is not allowed: did you mean binary:logistic?",
        "eta='3' is not allowed: it must be a number from 0 to 1.",
        "alpha='x' is not allowed: it must be a number, 0 or more.",
        "checkpoint_keep='9' is not available in this version: leave it out (the default is 5).",
        "eval_metric: there is no metric 'acuracy': did you mean accuracy?",
        "max_dept is not a hyperparameter: did you mean max_depth?",
    )


def test_a_mistake_hides_no_other_but_is_told_once() -> None:
    assert mistakes(objective="reg:quantileerror", quantile_alpha="2") == (
        "quantile_alpha='2' is not allowed: it must be a number from 0 to 1, or a list of such.",
    )


# Names


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("learning_rate", "eta"),
        ("min_split_loss", "gamma"),
        ("reg_lambda", "lambda"),
        ("reg_alpha", "alpha"),
        ("n_jobs", "nthread"),
        ("random_state", "seed"),
    ],
)
def test_an_alias_is_the_same_setting(alias: str, name: str) -> None:
    assert parsed(**{alias: "1"}) == parsed(**{name: "1"}) == parsed(**{alias: "1", name: "1.0"})
    assert mistake(**{alias: "1", name: "0"}) == (
        f"{alias}='1' and {name}='0' are two values of one setting: keep one of the two names."
    )


@pytest.mark.parametrize("name", OBSOLETE)
def test_an_obsolete_name_is_accepted_with_one_line(name: str) -> None:
    (note,) = parsed(**{name: "1"}).notes
    assert note.startswith(f"{name}='1' is ")


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({"silent": "1"}, "verbosity", 0),
        ({"silent": "False"}, "verbosity", 1),
        ({"silent": "1", "verbosity": "2"}, "verbosity", 2),
        ({"gpu_id": "0"}, "device", "cuda"),
        ({"gpu_id": "-1"}, "device", "cpu"),
        ({"n_gpus": "2"}, "device", "cuda"),
        ({"n_gpus": "0"}, "device", "cpu"),
        ({"n_gpus": "2", "device": "cpu"}, "device", "cpu"),
        ({"gpu_id": "first"}, "device", None),
        ({"tree_method": "gpu_hist"}, "device", "cuda"),
        ({"tree_method": "gpu_hist"}, "tree_method", "hist"),
        ({"tree_method": '"GPU_HIST"', "device": "cpu"}, "device", "cpu"),
        ({"tree_method": "gpu_hist", "n_gpus": "0"}, "device", "cuda"),
        ({"device": "cuda:1"}, "device", "cuda"),
        ({"device": "gpu"}, "device", "cuda"),
        ({"updater": "sync,grow_colmaker"}, "updater", ("grow_colmaker",)),
        ({"updater": "sync"}, "updater", None),
    ],
)
def test_old_names_and_values_become_those_of_today_with_a_line_each(
    raw: dict[str, object], field: str, value: object
) -> None:
    job = parsed(**raw)
    assert getattr(job.settings, field) == value
    assert len(job.notes) == len(set(raw) - {"verbosity"} - ({"device"} if len(raw) > 1 else set()))


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("colsample_by_tree", "did you mean colsample_bytree?"),
        ("learnin_rate", "did you mean learning_rate?"),
        ("max_bins", "did you mean max_bin?"),
        ("Max_Depth", "did you mean max_depth?"),
        ("n_estimators", "did you mean num_round?"),
        ("num_boost_round", "did you mean num_round?"),
        ("early-stopping-rounds", "did you mean early_stopping_rounds?"),
        ("sparse_treshold", "did you mean sparse_threshold?"),
        ("num_feature", "XGBoost sets it itself; leave it out."),
        ("rng_state", "XGBoost sets it itself; leave it out."),
        ("xyzzy", "leave it out; `smxgb describe` lists all."),
        ("x" * 3000, "leave it out; `smxgb describe` lists all."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, cure: str) -> None:
    shown = name if len(name) < 60 else "x" * 57 + "..."
    assert mistake(**{name: "1"}) == f"{shown} is not a hyperparameter: {cure}"


def test_the_value_of_an_unknown_name_is_never_said() -> None:
    assert "AKIA5" not in mistake(aws_secret_access_key="AKIA5")  # noqa: S106 - it is none


def test_mistakes_may_be_taken_together_with_those_of_the_rest_of_the_job() -> None:
    mistakes = Mistakes()
    found = parse({"num_round": "5", "max_depth": "x", "eta": "0.1"}, mistakes)
    assert [*mistakes] == ["max_depth='x' is not allowed: it must be a whole number, 0 or more."]
    assert (found.settings.max_depth, found.settings.eta) == (None, 0.1)


def test_a_setting_is_shown_as_the_job_gives_it() -> None:
    assert parsed(gpu_id="0").shown["device"] == "gpu_id='0'"
    assert parsed(tree_method="gpu_hist").shown["device"] == "tree_method='gpu_hist'"
    assert parsed(tree_method="gpu_hist", device="gpu").shown["device"] == "device='gpu'"


@pytest.mark.parametrize("selector", ["greedy", "thrifty", "random"])
def test_a_selector_of_features_needs_its_updater(selector: str) -> None:
    assert mistake(booster="gblinear", feature_selector=selector) == (
        f"feature_selector={selector} needs updater=coord_descent: set that too."
    )


@pytest.mark.parametrize(
    ("raw", "passed"),
    [
        ({"sparse_threshold": '"0.5"'}, {"sparse_threshold": 0.5}),
        ({"validate_parameters": "True"}, {"validate_parameters": "True"}),
        (
            {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "greedy", "top_k": "2.0"},
            {"feature_selector": "greedy", "top_k": 2},
        ),
    ],
)
def test_what_xgboost_takes_beyond_the_table_is_passed_through(
    raw: dict[str, object], passed: dict[str, object]
) -> None:
    job = parsed(**raw)
    assert job.extra == passed
    assert job.notes == ()
    train(booster_params(job))


def test_a_parameter_that_has_no_effect_is_passed_with_a_line() -> None:
    job = parsed(feature_selector="greedy")
    assert job.notes == ("feature_selector has no effect with the job's booster and objective.",)


def test_a_value_that_xgboost_refuses_is_reported_in_its_words() -> None:
    raw = {"booster": "gblinear", "feature_selector": "best", "sparse_threshold": "none", "sketch_rows": "3"}
    first, second = mistakes(**raw)
    assert first == "sketch_rows='3' is not available in this version: leave it out (the default is unset)."
    assert second.startswith(
        "feature_selector='best' is not allowed: XGBoost says: Invalid Input: 'best', valid "
    )
    assert "\n" not in second


def test_script_mode_keys_are_kept_apart() -> None:
    keys = {"sagemaker_program": '"train.py"', "sagemaker_region": '"eu-west-1"'}
    assert parsed(**keys).script_mode == keys


def test_an_ordinary_job_is_parsed_without_xgboost() -> None:
    code = """
import sys
from smxgb.settings import parse
parse({"num_round": "5", "objective": "binary:logistic", "eval_metric": "auc", "silent": "1"})
sys.exit(bool({"numpy", "pandas", "pyarrow", "xgboost"} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The table against the installed XGBoost


def test_the_objectives_are_those_of_xgboost() -> None:
    complaint = ""
    try:
        train({"objective": "none"})
    except xgb.core.XGBoostError as error:
        complaint = str(error)
    listed = {
        line.split(": ")[1] for line in complaint.splitlines() if line.startswith("Objective candidate")
    }
    assert listed == {*get_args(Objective), "reg:linear"}


def test_every_name_that_xgboost_reports_is_declared_passed_through_or_internal() -> None:
    declared = {name for field in UPSTREAM_FIELDS for name in (name_of(field), *trait_of(field).aliases)}
    assert upstream.known_names() - declared == {
        "boost_from_average",
        "disable_default_eval_metric",
        "feature_selector",
        "sparse_threshold",
        "tolerance",
        "validate_parameters",
    }


SAMPLES: dict[str, object] = {
    "objective": "reg:gamma",
    "num_class": "3",
    "device": "cpu",
    "quantile_alpha": "[0.1,0.5]",
    "expectile_alpha": "0.1",
    "process_type": "default",
    "updater": "grow_colmaker,prune",
    "monotone_constraints": "(1,0,-1)",
    "interaction_constraints": "[[0,1],[2]]",
    "max_bin": "16",
    "label_lower_column": "0",
}
OWNERS = {
    "num_class": {"objective": "multi:softprob"},
    "quantile_alpha": {"objective": "reg:quantileerror"},
    "expectile_alpha": {"objective": "reg:expectileerror"},
    "tweedie_variance_power": {"objective": "reg:tweedie"},
    "huber_slope": {"objective": "reg:pseudohubererror"},
    "ndcg_exp_gain": {"objective": "rank:ndcg"},
    "scale_pos_weight": {"objective": "binary:logistic"},
}


@pytest.mark.parametrize("field", UPSTREAM_FIELDS)
def test_each_declared_parameter_is_one_that_xgboost_uses(field: str) -> None:
    name = name_of(field)
    owner = OWNERS.get(name, {"objective": "rank:ndcg"} if name.startswith("lambdarank") else {})
    if name.startswith("aft"):
        owner = {"objective": "survival:aft", "label_lower_column": "1", "label_upper_column": "2"}
    options = get_args(get_args(Hyperparameters.model_fields[field].annotation)[0])
    text = SAMPLES.get(
        name, options[-1] if options and isinstance(options[-1], str) else "1.5" if "power" in name else "1"
    )
    job = parsed(**owner, **{name: text})
    answer = upstream.ask(booster_params(job) | resolve_constraints(job.settings, ["a", "b", "c"]))
    assert answer == upstream.Answer(None, frozenset())
    for alias in trait_of(field).aliases:
        assert upstream.ask({alias: "1"}) == upstream.Answer(None, frozenset())


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


# The container's own settings


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("device", None),
        ("label_column", None),
        ("weight_column", None),
        ("group_column", None),
        ("label_lower_column", None),
        ("label_upper_column", None),
        ("drop_columns", ()),
        ("categorical_columns", ()),
        ("enable_categorical", False),
        ("csv_weights", False),
        ("csv_header", "auto"),
        ("csv_delimiter", "auto"),
        ("invalid_label", "error"),
        ("infinity", "error"),
        ("libsvm_indexing", "auto"),
        ("early_stopping_rounds", None),
        ("early_stopping_metric", None),
        ("eval_metric", ()),
        ("eval_train", True),
        ("tuning_metric", None),
        ("kfold", None),
        ("num_cv_round", None),
        ("use_dask_gpu_training", False),
        ("save_model_on_termination", False),
        ("sketch_rows", None),
        ("workers_per_host", None),
        ("collective_timeout", 1800),
        ("start_timeout", 900),
        ("silence_timeout", 30),
        ("checkpoint_interval", 1),
        ("checkpoint_keep", 5),
        ("checkpoint_mismatch", "error"),
        ("control_port", 7890),
        ("tracker_port", 9091),
        ("scheduler_port", 8786),
        ("spool_dir", None),
        ("dashboard", False),
        ("report", True),
        ("shap_rows", 0),
    ],
)
def test_each_setting_of_the_container_has_its_default(name: str, default: object) -> None:
    assert getattr(parsed().settings, name) == default


def test_the_table_of_defaults_above_is_whole() -> None:
    marks = [*test_each_setting_of_the_container_has_its_default.pytestmark]  # type: ignore[attr-defined]
    tested = {name for name, _ in marks[0].args[1]}
    own = {field for field in Hyperparameters.model_fields if trait_of(field).use != "xgboost"}
    assert own - tested == {"num_round"}


def test_absent_parameters_of_xgboost_are_left_to_xgboost_but_for_the_objective() -> None:
    assert booster_params(parsed()) == {"seed_per_iteration": 1, "objective": "reg:squarederror"}


@pytest.mark.parametrize("field", LATER_FIELDS)
def test_a_setting_that_comes_later_is_accepted_at_its_default_only(field: str) -> None:
    default = Hyperparameters.model_fields[field].default
    assert parsed(**{field: "null" if default is None else json.dumps(default)}) == parsed()
    named = {"checkpoint_mismatch": "restart"}
    other = named.get(field) or (json.dumps(not default) if isinstance(default, bool) else "4321")
    assert mistake(**{field: other}).startswith(
        f"{field}='{other}' is not available in this version: leave it out"
    )


# Settings that must agree


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
        ({"updater": "grow_colmaker,grow_colmaker"}, "has 2 that grow trees, and one tree is grown once"),
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
        ({"updater": "grow_histmaker,grow_quantile_histmaker"}, ("has 2 that grow trees",)),
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
            ("csv_weights takes the column right after the label, and there are bounds",),
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
    train(params | ({"num_class": 3} if classes else {}), label=[0, 1, 2] * 20 if classes else None)


# Metrics


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


def test_classes_without_an_objective_mean_softmax_as_in_xgboost_itself() -> None:
    job = parsed(num_class="3")
    assert job.settings.objective == "multi:softmax"
    assert job.metrics[0].name == "mlogloss"
    matrix = xgb.DMatrix(np.eye(3, dtype=np.float32), label=[0, 1, 2])
    booster = xgb.train({"num_class": 3, "nthread": 1}, matrix, 1)
    assert json.loads(booster.save_config())["learner"]["objective"]["name"] == "multi:softmax"


# Constraints


NAMES = ("age", "height", "weight")


@pytest.mark.parametrize(
    "text",
    [
        "(1,0,-1)",
        "[1, 0, -1]",
        '{"age": 1, "weight": -1}',
        "{'weight': -1, 'age': 1}",
        "1,0,-1",
        "(1.0,0,-1)",
    ],
)
def test_monotone_constraints_by_position_or_name(text: str) -> None:
    params = resolve_constraints(parsed(monotone_constraints=text).settings, NAMES)
    assert params == {"monotone_constraints": "(1,0,-1)"}
    train(params)


def test_one_direction_is_enough_for_the_first_feature() -> None:
    params = resolve_constraints(parsed(monotone_constraints="(1)").settings, NAMES)
    assert params == {"monotone_constraints": "(1)"}
    train(params)


@pytest.mark.parametrize(
    "text", ["[[0,1],[2]]", '[["age", "height"], ["weight"]]', "[['age',1],[2]]", "((0,1),(2,))"]
)
def test_interaction_constraints_by_position_or_name(text: str) -> None:
    params = resolve_constraints(parsed(interaction_constraints=text).settings, NAMES)
    assert params == {"interaction_constraints": "[[0, 1], [2]]"}
    train(params)


def test_constraints_on_features_that_are_not_there_are_refused_together() -> None:
    settings = parsed(
        monotone_constraints='{"agee": 1}', interaction_constraints='[["heigt", 1], [3], [-1], ["zzz"]]'
    ).settings
    with pytest.raises(UserError) as caught:
        resolve_constraints(settings, NAMES)
    range_text = "the 3 features count from 0 to 2, without the label."
    assert caught.value.mistakes == (
        "monotone_constraints: there is no feature 'agee'; did you mean 'age'?",
        "interaction_constraints: there is no feature 'heigt'; did you mean 'height'?",
        f"interaction_constraints: there is no feature 3; {range_text}",
        f"interaction_constraints: there is no feature -1; {range_text}",
        "interaction_constraints: there is no feature 'zzz'; the first are age, height, weight.",
    )


def test_more_directions_than_features_are_refused() -> None:
    with pytest.raises(UserError, match="has 4 directions for 3 features"):
        resolve_constraints(parsed(monotone_constraints="(1,0,0,1)").settings, NAMES)


def test_no_constraints_mean_no_parameters() -> None:
    assert resolve_constraints(parsed().settings, NAMES) == {}


def test_a_monotone_feature_really_is_monotone() -> None:
    settings = parsed(monotone_constraints='{"height": -1}').settings
    rows = np.random.default_rng(1).random((500, 3), dtype=np.float32)
    label = rows[:, 1] + np.random.default_rng(2).normal(0, 0.1, 500)
    matrix = xgb.DMatrix(rows, label=label)
    booster = xgb.train({"nthread": 1, **resolve_constraints(settings, NAMES)}, matrix, 10)
    probe = np.full((50, 3), 0.5, dtype=np.float32)
    probe[:, 1] = np.linspace(0, 1, 50)
    assert (np.diff(booster.predict(xgb.DMatrix(probe))) <= 0).all()


def test_a_setting_of_a_later_version_is_never_suggested() -> None:
    for field_name in Hyperparameters.model_fields:
        if trait_of(field_name).use == "later":
            name = name_of(field_name)
            for misspelt in (name[:-1], f"{name}x", name.partition("_")[0]):
                if misspelt not in Hyperparameters.model_fields:
                    assert f"did you mean {name}?" not in mistake(**{misspelt: 1})
