"""A model on Flask as AWS's image has it: a sniffer for the delimiter, lists of text, a DMatrix.

Run by benchmarks/serving.py: gunicorn with gevent workers, one thread each, a copy of the model in each.
"""

import csv
import io
import os

import flask
import numpy as np
import xgboost as xgb

app = flask.Flask(__name__)
booster = xgb.Booster(model_file=os.environ["MODEL"])
booster.set_param({"nthread": 1})


@app.get("/ping")  # type: ignore[untyped-decorator]
def ping() -> flask.Response:
    """Say that the model is loaded."""
    return flask.Response(status=200)


@app.post("/invocations")  # type: ignore[untyped-decorator]
def invocations() -> flask.Response:
    """Predict rows of CSV."""
    text = flask.request.get_data().decode()
    delimiter = csv.Sniffer().sniff(text.split("\n", 1)[0][:512]).delimiter
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    matrix = xgb.DMatrix(np.array(rows).astype(float))
    scores = booster.predict(matrix, validate_features=False).tolist()
    return flask.Response("\n".join(map(str, scores)), mimetype="text/csv")
