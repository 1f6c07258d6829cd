from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from smxgb.job import CONTENT_TYPES
from smxgb.settings.description import allowed, choices, describe, settings_table
from smxgb.settings.hyperparameters import NAMES, OBSOLETE, TRAITS
from smxgb.settings.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

README = Path(__file__).parents[3] / "README.md"
BEGIN, END = "<!-- settings:begin -->", "<!-- settings:end -->"


def described(name: str) -> Mapping[str, object]:
    entries = cast("list[Mapping[str, object]]", describe(CONTENT_TYPES)["hyperparameters"])
    (entry,) = (entry for entry in entries if entry["name"] == name)
    return entry


def test_the_readme_holds_the_tables_of_settings() -> None:
    text = README.read_text(encoding="utf-8")
    assert BEGIN in text, f"README.md has no line {BEGIN}"
    assert END in text, f"README.md has no line {END}"
    held = text.partition(BEGIN)[2].partition(END)[0].strip()
    renew = (
        "the settings in README.md are not those declared: put the output of "
        f"`python -m smxgb describe --markdown` between {BEGIN} and {END}"
    )
    assert held == settings_table().strip(), renew


def test_every_setting_that_can_be_set_stands_in_the_tables_with_its_other_names() -> None:
    table = settings_table()
    assert all(table.count(f"\n| `{name}`") == 1 for name in TRAITS)
    assert all(f"`{name}`" in table for name in NAMES)


def test_every_row_of_the_tables_has_four_cells() -> None:
    rows = [line for line in settings_table().splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}


def test_the_tables_show_what_is_declared() -> None:
    table = settings_table()
    assert "| `num_round` | a whole number, 1 or more (tuning: 1 to 4000) | **required** |" in table
    assert "| `eta`, `learning_rate` | a number from 0 to 1 (tuning: 0.1 to 0.5) | 0.3 |" in table
    assert "| `csv_header` | one of auto, true, false | auto |" in table
    assert "| `eval_train` | true or false | true |" in table


def test_the_description_is_json() -> None:
    text = json.dumps(describe(CONTENT_TYPES), allow_nan=False)
    assert json.loads(text)["content_types"]["csv"] == ["text/csv", "csv"]


def test_a_setting_is_described_with_range_default_and_tuning_range() -> None:
    assert described("lambda") == {
        "name": "lambda",
        "allowed": "a number, 0 or more",
        "required": False,
        "default": 1.0,
        "description": "L2 regularisation of the weights.",
        "read_by": "xgboost",
        "aliases": ["reg_lambda"],
        "tunable_range": [0, 1000],
    }
    assert described("num_round")["required"] is True
    assert described("booster")["choices"] == ["gbtree", "gblinear", "dart"]


# What XGBoost's documentation gives as the default of each.
@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("eta", 0.3),
        ("max_depth", 6),
        ("max_bin", 256),
        ("lambda", 1.0),
        ("tree_method", "auto"),
        ("rate_drop", 0.0),
        ("one_drop", False),
        ("ndcg_exp_gain", True),
        ("tweedie_variance_power", 1.5),
        ("aft_loss_distribution", "normal"),
        ("verbosity", 1),
        ("num_class", None),
    ],
)
def test_a_parameter_of_xgboost_has_xgboosts_default(name: str, default: object) -> None:
    assert described(name)["default"] == default
    assert type(described(name)["default"]) is type(default)


def test_the_tables_list_every_metric_and_every_obsolete_name() -> None:
    table = settings_table()
    assert all(f"`{name}`" in table for name in [*METRICS, *OBSOLETE])


@pytest.mark.parametrize("name", TRAITS)
def test_every_setting_has_words_for_what_it_takes(name: str) -> None:
    text = allowed(name)
    assert text
    assert "2147483647" not in text
    assert all(choice in text for choice in choices(name))


@pytest.mark.parametrize("name", TRAITS)
def test_every_setting_has_one_plain_sentence(name: str) -> None:
    meaning = str(described(name)["description"])
    assert meaning.endswith(".")
    assert "|" not in meaning


def test_the_metric_definitions_have_the_form_that_the_sdk_takes() -> None:
    definitions = cast("list[dict[str, str]]", describe(CONTENT_TYPES)["metric_definitions"])
    assert all(set(definition) == {"Name", "Regex"} for definition in definitions)
