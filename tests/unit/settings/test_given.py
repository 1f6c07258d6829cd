from __future__ import annotations

import pytest
from tests.unit.settings.parsed import mistake, parsed


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


def test_a_setting_is_shown_as_the_job_gives_it() -> None:
    assert parsed(gpu_id="0").shown["device"] == "gpu_id='0'"
    assert parsed(tree_method="gpu_hist").shown["device"] == "tree_method='gpu_hist'"
    assert parsed(tree_method="gpu_hist", device="gpu").shown["device"] == "device='gpu'"


def test_script_mode_keys_are_kept_apart() -> None:
    keys = {"sagemaker_program": '"train.py"', "sagemaker_region": '"eu-west-1"'}
    assert parsed(**keys).script_mode == keys
