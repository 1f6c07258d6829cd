from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.settings.parsed import parsed

from smxgb.settings import parse


def setting(**raw: object) -> object:
    """Return the value of the one setting that is given."""
    (name,) = raw
    return getattr(parsed(**raw).settings, name)


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
