"""A real server of several models, one with a user's script, and predictions for files."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.serving import serving, write_models

if TYPE_CHECKING:
    from pathlib import Path

ROWS = np.random.default_rng(6).normal(size=(50, 3)).astype(np.float32)
CSV = pd.DataFrame(ROWS).to_csv(index=False, header=False)


def booster(level: float) -> xgb.Booster:
    made = xgb.train({"max_depth": 3}, xgb.DMatrix(ROWS, ROWS[:, 0] + level), 4)
    made.feature_names = made.feature_types = None
    return made


def test_models_come_and_go_by_requests(tmp_path: Path) -> None:
    boosters = {name: booster(level) for level, name in enumerate(("one", "two"))}
    for name, made in boosters.items():
        write_models(tmp_path / name, **{"xgboost-model": made})
    with serving(tmp_path, SAGEMAKER_MULTI_MODEL="true") as server:
        assert json.loads(server.request("GET", "/models").body) == {"models": []}
        for name in boosters:
            body = json.dumps({"model_name": name, "url": str(tmp_path / name / "model")})
            reply = server.request("POST", "/models", body, content_type="application/json")
            assert (reply.status, "Workers scaled" in reply.text) == (200, True)
        for name, made in boosters.items():
            reply = server.request("POST", f"/models/{name}/invoke", CSV, content_type="text/csv")
            found = np.array(reply.text.split(","), float).astype(np.float32)
            assert np.array_equal(found, made.predict(xgb.DMatrix(ROWS)))
        assert server.request("DELETE", "/models/one").status == 200
        assert server.request("POST", "/models/one/invoke", CSV, content_type="text/csv").status == 404
        assert server.request("POST", "/models/three/invoke", CSV, content_type="text/csv").status == 404


def test_a_users_script_answers(tmp_path: Path) -> None:
    base = write_models(tmp_path, **{"xgboost-model": booster(0)})
    (base / "model" / "code").mkdir()
    (base / "model" / "code" / "inference.py").write_text(
        "import xgboost as xgb\n"
        "def model_fn(model_dir):\n"
        "    with open(f'{model_dir}/xgboost-model', 'rb') as stream:\n"
        "        return xgb.Booster(model_file=bytearray(stream.read()))\n"
        "def output_fn(prediction, accept):\n"
        "    return str(len(prediction)), 'text/plain'\n"
    )
    with serving(base, SAGEMAKER_PROGRAM="inference.py") as server:
        reply = server.invoke(CSV)
        assert (reply.status, reply.text, reply.headers["content-type"]) == (200, "50", "text/plain")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_predict_writes_a_line_for_each_row_of_files(tmp_path: Path, kind: str) -> None:
    base = write_models(tmp_path, **{"xgboost-model": booster(0)})
    files = [tmp_path / f"{number}.{kind}" for number in range(2)]
    frame = pd.DataFrame(ROWS, columns=list("abc"))
    for file in files:
        if kind == "csv":
            frame.to_csv(file, index=False)
        else:
            frame.to_parquet(file)
    output = tmp_path / "out.csv"
    arguments = [base / "model" / "xgboost-model", *files, "--output", output]
    subprocess.run([sys.executable, "-m", "smxgb", "predict", *map(str, arguments)], check=True)
    expected = np.tile(booster(0).predict(xgb.DMatrix(ROWS)), 2)
    assert np.array_equal(np.loadtxt(output).astype(np.float32), expected)


def test_predict_says_in_which_file_a_mistake_is(tmp_path: Path) -> None:
    base = write_models(tmp_path, **{"xgboost-model": booster(0)})
    (tmp_path / "bad.csv").write_text("1,2,3\n1,x,3\n")
    done = subprocess.run(
        [sys.executable, "-m", "smxgb", "predict", str(base / "model"), str(tmp_path / "bad.csv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "bad.csv: the body, line 2, column 1: 'x' is not a number" in done.stderr
