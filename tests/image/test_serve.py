"""The image serves what it has trained, as SageMaker and its SDK start it."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import xgboost as xgb
from tests.image.containers import DOCKER, docker, image
from tests.image.local_mode import run_with
from tests.opt_ml import csv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd
    from tests.image.containers import Train

SETTINGS = {"num_round": 10, "objective": "reg:squarederror"}


@contextmanager
def serving(model: Path, *options: str) -> Iterator[tuple[str, str]]:
    """Start the image on a folder of models; yield the container and its address when it is healthy."""
    command = ["run", "--detach", "--volume", f"{model}:/opt/ml/model:ro", *options, image("cpu"), "serve"]
    container = docker(*command).stdout.split()[-1]
    try:
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        address = docker("inspect", "--format", form, container).stdout.strip()
        while docker("inspect", "--format", "{{.State.Running}}", container).stdout.strip() == "true":
            try:
                if _ask(address, "GET", "/ping")[0] == 200:
                    break
            except OSError:
                time.sleep(0.05)
        yield container, address
    finally:
        docker("rm", "--force", container)


def _ask(address: str, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, 8080, timeout=60)
    try:
        connection.request(method, path, body, {"Content-Type": "text/csv"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_trained_model_is_served_read_only_and_ended_with_code_0(
    train: Train, table: pd.DataFrame, tmp_path: Path
) -> None:
    outcome = train("train", hyperparameters=SETTINGS, channels={"train": table})
    features = table.iloc[:, 1:]
    expected = outcome.predict(features)
    options = ("--read-only", "--tmpfs", "/tmp", "--user", "1000")  # noqa: S108 - the container's own
    with serving(tmp_path / "ml" / "model", *options) as (container, address):
        status, body = _ask(address, "POST", "/invocations", features.to_csv(index=False, header=False))
        assert (status, np.array_equal(np.array(body.split(), np.float32), expected)) == (200, True)
        assert docker("stop", container).returncode == 0
        assert docker("inspect", "--format", "{{.State.ExitCode}}", container).stdout.strip() == "0"
        assert "Ready." in docker("logs", container).stdout


def test_the_port_is_the_one_that_sagemaker_binds_and_the_labels_say_so() -> None:
    labels = json.loads(docker("inspect", "--format", "{{json .Config.Labels}}", image("cpu")).stdout)
    assert labels["com.amazonaws.sagemaker.capabilities.multi-models"] == "true"
    assert labels["com.amazonaws.sagemaker.capabilities.accept-bind-to-port"] == "true"


def test_thirty_models_share_little_memory(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(20_000, 20)).astype(np.float32)
    parameters = {"max_depth": 12, "min_child_weight": 0, "lambda": 0}
    booster = xgb.train(parameters, xgb.DMatrix(rows, generator.normal(size=len(rows))), 60)
    booster.feature_names = booster.feature_types = None
    model = tmp_path / "0"
    model.mkdir()
    (model / "xgboost-model").write_bytes(booster.save_raw("ubj"))
    row = ",".join(map(repr, rows[0].tolist()))
    expected = booster.predict(xgb.DMatrix(rows[:1]))
    options = ("--env", "SAGEMAKER_MULTI_MODEL=true", "--memory", "300m", "--memory-swap", "300m")
    with serving(tmp_path, *options) as (container, address):
        for number in range(30):
            asked = json.dumps({"model_name": f"m{number}", "url": "/opt/ml/model/0"})
            assert _ask(address, "POST", "/models", asked)[0] == 200
        for number in (*range(30), *range(5)):
            status, body = _ask(address, "POST", f"/models/m{number}/invoke", row)
            assert (status, np.float32(float(body))) == (200, expected[0])
        assert docker("inspect", "--format", "{{.State.OOMKilled}}", container).stdout.strip() == "false"


def test_without_a_model_serving_ends_at_once_and_says_why(tmp_path: Path) -> None:
    done = subprocess.run(
        [DOCKER, "run", "--rm", "--volume", f"{tmp_path}:/opt/ml/model:ro", image("cpu"), "serve"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "holds no file: the endpoint has no model" in done.stderr) == (2, True)


def test_sdk_v2_trains_deploys_predicts_and_transforms(tmp_path: Path, table: pd.DataFrame) -> None:
    ran = run_with("v2", tmp_path, SETTINGS, {"train": csv(table)}, serve=table.iloc[:20, 1:])
    assert ran.code == 0, ran.log
    expected = ran.outcome().predict(table.iloc[:20, 1:])
    answers = json.loads((tmp_path / "served.json").read_text())
    assert np.array_equal(np.array(answers["predicted"], np.float32), expected)
    assert np.array_equal(np.array(answers["transformed"], np.float32), expected)
