from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smxgb.supervision.publishing import create, finished, publish, remove_unfinished, unfinished

if TYPE_CHECKING:
    from collections.abc import Callable


def test_published_results_have_their_names_and_are_listed(tmp_path: Path) -> None:
    places = [tmp_path / "metrics.json", tmp_path / "xgboost-model"]
    for place in places:
        unfinished(place).write_text(place.name)
    assert finished(tmp_path) == []
    publish([unfinished(place) for place in places])
    assert finished(tmp_path) == places
    assert [place.read_text() for place in places] == ["metrics.json", "xgboost-model"]


def test_if_one_result_can_not_be_published_none_is(tmp_path: Path) -> None:
    place = tmp_path / "metrics.json"
    unfinished(place).touch()
    with pytest.raises(FileNotFoundError):
        publish([unfinished(place), unfinished(tmp_path / "xgboost-model")])
    assert list(tmp_path.iterdir()) == []


def test_only_what_was_not_published_is_removed(tmp_path: Path) -> None:
    model = tmp_path / "xgboost-model"
    model.touch()
    unfinished(tmp_path / "metrics.json").touch()
    unfinished(tmp_path / "folder").mkdir()
    unfinished(tmp_path / "link").symlink_to(tmp_path)
    remove_unfinished(tmp_path, tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == [model]


def test_a_folder_that_is_not_there_has_no_results(tmp_path: Path) -> None:
    assert finished(tmp_path / "nowhere") == []


def plant_a_link(place: Path) -> None:
    place.symlink_to(place.parent / "precious")


def plant_a_folder(place: Path) -> None:
    place.mkdir()
    (place / "file").touch()


@pytest.mark.parametrize("plant", [plant_a_link, plant_a_folder, os.mkfifo, Path.touch])
def test_a_result_is_a_new_file_whatever_stands_in_its_place(
    tmp_path: Path, plant: Callable[[Path], None]
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    place = unfinished(tmp_path / "xgboost-model")
    plant(place)
    with create(place) as file:
        file.write(b"model")
    assert place.read_bytes() == b"model"
    assert not place.is_symlink()
    assert precious.read_text() == "precious"


def test_an_earlier_job_keeps_its_files_if_one_result_can_not_be_published(tmp_path: Path) -> None:
    places = [tmp_path / "metrics.json", tmp_path / "xgboost-model"]
    for place in places:
        place.write_text("earlier")
    unfinished(places[0]).write_text("later")
    with pytest.raises(FileNotFoundError):
        publish([unfinished(place) for place in places])
    assert [place.read_text() for place in places] == ["earlier", "earlier"]
    assert finished(tmp_path) == places
    assert len(list(tmp_path.iterdir())) == 2


def test_published_results_take_the_place_of_an_earlier_jobs(tmp_path: Path) -> None:
    place = tmp_path / "xgboost-model"
    place.write_text("earlier")
    unfinished(place).write_text("later")
    publish([unfinished(place)])
    assert place.read_text() == "later"
    assert list(tmp_path.iterdir()) == [place]
