from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smxgb.environment import Hosts
from smxgb.errors import Mistakes
from smxgb.job.channels import Channel, Channels
from smxgb.job.mode import Team, choose_team, refuse_pipes
from smxgb.machine import Machine
from smxgb.settings import parse

if TYPE_CHECKING:
    from smxgb.job.channels import InputMode

ANNOUNCEMENT = {
    "objective": "reg:squarederror",
    "num_round": "500",
    "verbosity": "3",
    "tree_method": "gpu_hist",
    "eval_metric": "rmse",
    "use_dask_gpu_training": "true",
}
"""The settings of the blog post in which AWS announced training on all GPUs."""

NAMES = ("algo-1", "algo-2", "algo-3")


def machine(gpus: int = 0, *names: str) -> Machine:
    return Machine(8, 1 << 36, "machine", 1 << 35, names or tuple(map(str, range(gpus))))


def chosen(on: Machine, hosts: int = 1, /, **settings: object) -> tuple[Team, list[str]]:
    """Return the team of a job, and the mistakes that were found."""
    mistakes = Mistakes()
    parameters = parse({"num_round": "2", **{name: str(value) for name, value in settings.items()}})
    team = choose_team(parameters, Hosts("algo-1", NAMES[:hosts]), on, mistakes)
    return team, list(mistakes)


def test_trees_without_a_limit_under_constraints_are_refused_on_gpus_only() -> None:
    settings = {"interaction_constraints": "[[0, 1]]", "max_depth": 0}
    _, mistakes = chosen(machine(1), **settings)
    [mistake] = mistakes
    assert mistake.startswith(
        "interaction_constraints with max_depth=0 (no limit) needs max_leaves on a GPU: "
    )
    for allowed in ({"max_leaves": 9}, {"max_depth": 3}, {"device": "cpu"}):
        assert not chosen(machine(1), **settings | allowed)[1]
    assert not chosen(machine(0), **settings)[1]


def team_of(on: Machine, hosts: int = 1, /, **settings: object) -> tuple[str, str, int]:
    """Return mode, device and workers of a job without mistakes."""
    team, mistakes = chosen(on, hosts, **settings)
    assert not mistakes
    assert team.mode.why
    return team.mode.value, team.device.value, team.workers


@pytest.mark.parametrize(
    ("gpus", "hosts", "settings", "expected"),
    [
        (0, 1, {}, ("single", "cpu", 1)),
        (0, 2, {}, ("collective", "cpu", 1)),
        (1, 1, {}, ("single", "cuda", 1)),
        (1, 3, {}, ("collective", "cuda", 1)),
        (4, 1, {}, ("dask", "cuda", 4)),
        (8, 3, {}, ("dask", "cuda", 8)),
        (1, 2, {"use_dask_gpu_training": "true"}, ("dask", "cuda", 1)),
        (4, 1, {"workers_per_host": 2}, ("dask", "cuda", 2)),
        (4, 1, {"workers_per_host": 1}, ("single", "cuda", 1)),
        (4, 1, {"device": "cpu"}, ("single", "cpu", 1)),
        (4, 2, {"device": "cpu"}, ("collective", "cpu", 1)),
        (4, 1, {"tree_method": "approx"}, ("dask", "cuda", 4)),
        (0, 1, {"use_dask_gpu_training": "true", "device": "cpu"}, ("dask", "cpu", 1)),
        (0, 2, {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 3}, ("dask", "cpu", 3)),
        (4, 1, {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2}, ("dask", "cpu", 2)),
    ],
)
def test_hosts_gpus_and_settings_make_the_team(
    gpus: int, hosts: int, settings: dict[str, object], expected: tuple[str, str, int]
) -> None:
    assert team_of(machine(gpus), hosts, **settings) == expected


def test_the_announcements_example_trains_on_every_gpu() -> None:
    assert team_of(machine(4), **ANNOUNCEMENT) == ("dask", "cuda", 4)


def test_the_announcements_example_on_one_gpu_needs_no_dask_and_says_so() -> None:
    team, mistakes = chosen(machine(1), **ANNOUNCEMENT)
    assert not mistakes
    assert team.mode.value == "single"
    assert "use_dask_gpu_training" in team.mode.why


def test_the_announcements_example_runs_without_a_gpu_only_if_asked_to() -> None:
    _, mistakes = chosen(machine(), **ANNOUNCEMENT)
    assert len(mistakes) == 1
    assert "needs a GPU and this host has none" in mistakes[0]
    assert "device=cpu" in mistakes[0]
    assert team_of(machine(), **ANNOUNCEMENT, device="cpu") == ("dask", "cpu", 1)


def test_dask_without_a_gpu_is_refused_in_one_sentence_that_offers_the_cpu() -> None:
    _, mistakes = chosen(machine(), use_dask_gpu_training="true")
    [mistake] = mistakes
    assert mistake.startswith(
        "use_dask_gpu_training=true needs a GPU and this host has none: use an instance"
    )
    assert "device=cpu" in mistake


@pytest.mark.parametrize(
    "setting", [{"tree_method": "exact"}, {"updater": "grow_colmaker"}, {"booster": "gblinear"}]
)
def test_what_has_no_gpu_version_is_refused_in_one_sentence(setting: dict[str, str]) -> None:
    [(name, value)] = setting.items()
    _, mistakes = chosen(machine(4), use_dask_gpu_training="true", **setting)
    assert len(mistakes) == 1
    assert mistakes[0].startswith(f"{name}={value} does not run on a GPU")
    _, mistakes = chosen(machine(4), device="cuda", **setting)
    assert len(mistakes) == 1


@pytest.mark.parametrize(
    "setting", [{"tree_method": "exact"}, {"updater": "grow_colmaker"}, {"booster": "gblinear"}]
)
def test_unasked_what_has_no_gpu_version_trains_on_the_processors(setting: dict[str, str]) -> None:
    assert team_of(machine(4), **setting) == ("single", "cpu", 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "survival:cox"},
        {"tree_method": "exact"},
        {"updater": "grow_colmaker"},
        {"booster": "gblinear"},
    ],
    ids=str,
)
def test_what_can_not_be_shared_is_refused_for_several_workers(settings: dict[str, str]) -> None:
    dask = {"use_dask_gpu_training": "true", "device": "cpu"}
    _, mistakes = chosen(machine(), **dask, workers_per_host=2, **settings)
    assert len(mistakes) == 1
    assert "works with one worker only" in mistakes[0]
    assert "workers_per_host=1" in mistakes[0]
    assert team_of(machine(), **dask, **settings) == ("dask", "cpu", 1)
    _, mistakes = chosen(machine(), 2, **settings)
    assert len(mistakes) == 1
    assert "instance_count=1" in mistakes[0]


def test_what_can_not_be_shared_trains_on_one_of_several_gpus_and_says_so() -> None:
    team, mistakes = chosen(machine(4), objective="survival:cox")
    assert not mistakes
    assert (team.mode.value, team.workers) == ("single", 1)
    assert team.mode.why == "objective=survival:cox trains on 1 of the 4 GPUs"


def test_a_gpu_takes_one_worker() -> None:
    _, mistakes = chosen(machine(4), workers_per_host=8)
    assert len(mistakes) == 1
    assert "a GPU takes one worker" in mistakes[0]


def test_slices_of_a_gpu_are_refused_as_a_team_and_taken_alone() -> None:
    slices = machine(0, "MIG-aaaa", "MIG-bbbb")
    _, mistakes = chosen(slices)
    assert len(mistakes) == 1
    assert "MIG" in mistakes[0]
    assert team_of(slices, workers_per_host=1) == ("single", "cuda", 1)


def test_a_processor_takes_one_worker() -> None:
    dask = {"use_dask_gpu_training": "true", "device": "cpu"}
    assert team_of(machine(), workers_per_host=8, **dask) == ("dask", "cpu", 8)
    _, mistakes = chosen(machine(), workers_per_host=100_000_000, **dask)
    [text] = mistakes
    assert text.startswith("workers_per_host=100000000 is more than the 8 processors of this host: ")


def test_workers_of_a_host_without_gpus_need_the_dask_mode() -> None:
    _, mistakes = chosen(machine(), workers_per_host=2)
    assert len(mistakes) == 1
    assert "use_dask_gpu_training=true" in mistakes[0]


def channels(mode: InputMode) -> Channels:
    return Channels(Channel("train", Path("train"), "csv", mode, "FullyReplicated", ()), None)


@pytest.mark.parametrize("mode", ["Pipe", "File", "FastFile"])
def test_a_pipe_has_one_reader_so_a_hosts_workers_can_not_share_it(mode: InputMode) -> None:
    team, _ = chosen(machine(4))
    mistakes = Mistakes()
    refuse_pipes(team, channels(mode), mistakes)
    assert bool(list(mistakes)) == (mode == "Pipe")
    alone, _ = chosen(machine(1))
    mistakes = Mistakes()
    refuse_pipes(alone, channels(mode), mistakes)
    assert not list(mistakes)


def test_all_hosts_must_offer_the_same() -> None:
    two, four = (chosen(machine(gpus), 2)[0] for gpus in (2, 4))
    assert two.offer() != four.offer()
    assert two.offer() == {"mode": "dask", "device": "cuda", "workers": 2}


@pytest.mark.parametrize(
    ("gpus", "settings", "value", "why"),
    [
        (0, {}, "cpu", "no GPU is there"),
        (1, {}, "cuda", "a GPU is there"),
        (1, {"device": "cuda"}, "cuda", "as asked for"),
        (1, {"tree_method": "gpu_hist"}, "cuda", "as asked for"),
        (1, {"tree_method": "exact"}, "cpu", "tree_method=exact has no GPU version"),
        (1, {"booster": "gblinear"}, "cpu", "booster=gblinear has no GPU version"),
        (0, {"tree_method": "gpu_hist", "device": "cpu"}, "cpu", "as asked for"),
        (2, {"device": "cpu"}, "cpu", "as asked for; 2 GPUs are not used"),
    ],
)
def test_the_device_follows_the_machine_unless_the_job_says_otherwise(
    gpus: int, settings: dict[str, object], value: str, why: str
) -> None:
    team, mistakes = chosen(machine(gpus), **settings)
    assert not mistakes
    assert (team.device.value, team.device.why) == (value, why)


@pytest.mark.parametrize(
    "settings", [{"device": "cuda"}, {"tree_method": "gpu_hist"}, {"gpu_id": 0}, {"n_gpus": 1}]
)
def test_a_gpu_that_is_not_there_is_a_mistake_of_the_setting_that_asks_for_it(
    settings: dict[str, object],
) -> None:
    [(name, value)] = settings.items()
    _, [mistake] = chosen(machine(), **settings)
    assert mistake.startswith(f"{name}={str(value)!r} needs a GPU and this host has none")
