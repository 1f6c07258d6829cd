from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smxgb.environment import Machine
from smxgb.errors import Mistakes, UserError
from smxgb.hyperparameters import parse
from smxgb.job import Choice, Places, _choose_device, load_job

if TYPE_CHECKING:
    from pathlib import Path


def chosen(gpus: tuple[str, ...], **settings: object) -> Choice[str]:
    """Return the device for a machine with these GPUs."""
    mistakes = Mistakes()
    machine = Machine(2, 8 << 30, "machine", 8 << 30, gpus)
    choice = _choose_device(parse({"num_round": 1, **settings}), machine, mistakes)
    mistakes.raise_any()
    return Choice(str(choice.value), choice.why)


@pytest.mark.parametrize(
    ("gpus", "settings", "value", "why"),
    [
        ((), {}, "cpu", "no GPU is there"),
        (("0",), {}, "cuda", "a GPU is there"),
        (("0",), {"device": "cuda"}, "cuda", "as asked for"),
        (("0",), {"tree_method": "gpu_hist"}, "cuda", "as asked for"),
        (("0",), {"tree_method": "exact"}, "cpu", "tree_method=exact has no GPU version"),
        (("0",), {"booster": "gblinear"}, "cpu", "booster=gblinear has no GPU version"),
        ((), {"tree_method": "gpu_hist", "device": "cpu"}, "cpu", "as asked for"),
    ],
)
def test_the_device_follows_the_machine_unless_the_job_says_otherwise(
    gpus: tuple[str, ...], settings: dict[str, object], value: str, why: str
) -> None:
    assert chosen(gpus, **settings) == Choice(value, why)


def test_a_gpu_that_is_not_used_is_said() -> None:
    assert chosen(("0", "1"), device="cpu").why == "as asked for; 2 GPUs are not used"


@pytest.mark.parametrize(
    "settings", [{"device": "cuda"}, {"tree_method": "gpu_hist"}, {"gpu_id": 0}, {"n_gpus": 1}]
)
def test_a_gpu_that_is_not_there_is_a_mistake_of_the_setting_that_asks_for_it(
    settings: dict[str, object],
) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(UserError, match=f" {name}={value!r} needs a GPU and this host has none"):
        chosen((), **settings)


def test_a_job_is_found_where_it_is_said_to_be(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"num_round": "7"}')
    data = tmp_path / "rows"
    data.mkdir()
    (data / "a.csv").write_text("1,2\\n")
    job = load_job({"SAGEMAKER_BASE_DIR": str(tmp_path)}, Places(settings, {"train": data}))
    assert job.parameters.settings.num_round == 7
    assert [file.path.name for file in job.channels.train.files] == ["a.csv"]
