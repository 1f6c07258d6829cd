"""Requests to a real server: the surface of AWS's image, its faults left out."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from tests.opt_ml import csv, run_train, write_opt_ml
from tests.recordio import framed, record, tensor
from tests.serving import serving, start, write_models
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt
    from tests.serving import Server

GENERATOR = np.random.default_rng(1)
ROWS = GENERATOR.normal(size=(300, 4)).astype(np.float32)
ROWS[GENERATOR.random(ROWS.shape) < 0.1] = np.nan
LISTS = [[None if np.isnan(value) else value for value in row] for row in ROWS.tolist()]


def train(objective: str, labels: npt.NDArray[np.float64], **parameters: object) -> xgb.Booster:
    matrix = xgb.DMatrix(ROWS, labels)
    booster = xgb.train({"objective": objective, "max_depth": 3, **parameters}, matrix, 8)
    booster.feature_names = booster.feature_types = None
    return booster


BINARY = train("binary:logistic", (np.nan_to_num(ROWS[:, 0]) > 0).astype(float))
CLASSES = np.digitize(np.nan_to_num(ROWS[:, 0]), [-0.5, 0.5]).astype(float)
SOFTPROB = train("multi:softprob", CLASSES, num_class=3)


def as_csv(rows: npt.NDArray[np.float32]) -> str:
    return "".join(",".join("" if np.isnan(v) else repr(v) for v in row) + "\n" for row in rows.tolist())


def as_libsvm(rows: npt.NDArray[np.float32]) -> str:
    return "".join(
        "0 " + " ".join(f"{index}:{value!r}" for index, value in enumerate(row) if not np.isnan(value)) + "\n"
        for row in rows.tolist()
    )


def as_npy(rows: npt.NDArray[np.float32]) -> bytes:
    written = io.BytesIO()
    np.save(written, rows)
    return written.getvalue()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(
        write_models(tmp_path_factory.mktemp("one"), model=BINARY), MAX_CONTENT_LENGTH="100000"
    ) as it:
        yield it


@pytest.fixture(scope="module")
def expected() -> npt.NDArray[np.float32]:
    return BINARY.predict(xgb.DMatrix(ROWS))


def test_ping_is_empty(server: Server) -> None:
    reply = server.request("GET", "/ping")
    assert (reply.status, reply.body) == (200, b"")


def test_execution_parameters(server: Server) -> None:
    parameters = json.loads(server.request("GET", "/execution-parameters").body)
    assert parameters["BatchStrategy"] == "MULTI_RECORD"
    assert parameters["MaxConcurrentTransforms"] >= 1
    assert parameters["MaxPayloadInMB"] >= 1


BODIES = {
    "text/csv": as_csv(ROWS).encode(),
    "text/csv; charset=utf-8": as_csv(ROWS[:5]).encode(),
    "text/csv; label_size=1": "".join(f"7,{line}\n" for line in as_csv(ROWS).splitlines()).encode(),
    "TEXT/CSV": as_csv(ROWS[:5]).encode(),
    "text/libsvm": as_libsvm(ROWS).encode(),
    "text/x-libsvm": as_libsvm(ROWS).encode(),
    "application/x-recordio-protobuf": framed(record(tensor(row), tensor([0])) for row in ROWS),
    "application/x-npy": as_npy(ROWS),
    "application/json": json.dumps({"instances": LISTS}).encode(),
    "application/jsonlines": "\n".join(json.dumps({"features": row}) for row in LISTS).encode(),
    "": as_libsvm(ROWS).encode(),
}


@pytest.mark.parametrize("content_type", BODIES)
def test_every_content_type_is_predicted_as_xgboost_does(
    server: Server, expected: npt.NDArray[np.float32], content_type: str
) -> None:
    reply = server.invoke(BODIES[content_type], content_type)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/csv"), reply.text
    found = np.array(reply.text.split("\n"), float)
    assert np.array_equal(found.astype(np.float32), expected[: len(found)])


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/csv"),
        ("*/*", "text/csv"),
        ("application/json", "application/json"),
        ("application/xml, application/json;q=0.5", "application/json"),
        ("text/csv;q=0.1, application/jsonlines", "application/jsonlines"),
        ("text/*", "text/csv"),
    ],
)
def test_the_answer_has_the_type_that_is_accepted_most(
    server: Server, accept: str, content_type: str
) -> None:
    assert server.invoke(as_csv(ROWS[:1]), accept=accept).headers["content-type"] == content_type


def test_answers_in_every_type(server: Server, expected: npt.NDArray[np.float32]) -> None:
    body = as_csv(ROWS[:3])
    scores = expected[:3].tolist()
    assert json.loads(server.invoke(body, accept="application/json").body) == {
        "predictions": [{"score": score} for score in scores]
    }
    lines = server.invoke(body, accept="application/jsonlines").text.split("\n")
    assert [json.loads(line) for line in lines] == [{"score": score} for score in scores]
    array = np.load(io.BytesIO(server.invoke(body, accept="application/x-npy").body))
    assert np.array_equal(array, expected[:3])
    records = server.invoke(body, accept="application/x-recordio-protobuf").body
    assert records.count(bytes.fromhex("0a23d7ce")) == 3
    assert all(np.float32(score).tobytes() in records for score in expected[:3])


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (("", "text/csv", ""), 204, ""),
        (("1,2,3,4", "image/png", ""), 415, "image/png"),
        (
            ("1,x,3,4", "text/csv", ""),
            415,
            "Loading csv data failed with Exception: the body, line 1, column 1: 'x'",
        ),
        (("0 1:x", "text/libsvm", ""), 415, "Loading libsvm data failed with Exception"),
        (("1,2,3", "text/csv", ""), 400, "has 3 columns, and the model has 4 features"),
        (("1,2,3,4,5", "text/csv", ""), 400, "has 5 columns, and the model has 4 features"),
        (("0 9:1", "text/libsvm", ""), 400, "index 9"),
        (("1,2,3,4", "text/csv", "image/png"), 406, "image/png"),
        (("1,2,3,4\n" * 20_000, "text/csv", ""), 413, "100,000 bytes"),
    ],
)
def test_statuses_and_their_texts(
    server: Server, request_: tuple[str, str, str], status: int, text: str
) -> None:
    reply = server.invoke(*request_)
    assert reply.status == status
    assert text in reply.text


def test_a_refusal_is_json_where_json_is_asked_for(server: Server) -> None:
    reply = server.invoke("1,x,3,4", accept="application/json")
    assert reply.status == 415
    assert "line 1, column 1" in json.loads(reply.body)["error"]


def test_other_paths_and_methods(server: Server) -> None:
    assert server.request("GET", "/models").status == 404
    assert server.request("GET", "/invocations").status == 405


def test_what_is_no_model_is_passed_over(tmp_path: Path) -> None:
    base = write_models(tmp_path, model=BINARY)
    (base / "model" / "notes.txt").write_text("hello")
    (base / "model" / "metrics.json").write_text("{}")
    (base / "model" / "code").mkdir()
    with serving(base) as server:
        assert server.invoke(as_csv(ROWS[:1])).status == 200
        assert "Passed over: notes.txt is no model of XGBoost" in server.log.read_text()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "holds no file"),
        (b"\x80\x04K\x01.", "is a pickled model"),
        (b"binf" + bytes(100), "is a binary model of XGBoost up to 1.7"),
        (BINARY.save_raw("ubj")[:-200], "is no model of XGBoost, or is damaged"),
    ],
)
def test_without_a_model_the_server_ends_at_once_and_says_why(
    tmp_path: Path, content: bytes | None, text: str
) -> None:
    (tmp_path / "model").mkdir()
    if content is not None:
        (tmp_path / "model" / "xgboost-model").write_bytes(content)
    server = start(tmp_path)
    assert server.process.wait(60) == 2
    assert text in server.log.read_text()


def test_an_answer_never_depends_on_the_rows_beside_it(tmp_path: Path) -> None:
    booster = train("reg:squarederror", np.nan_to_num(ROWS[:, 1]))
    booster.set_attr(libsvm_indexing="1")
    rows = [f"0 1:{value} 3:{value}" for value in (0.5, -0.5)]
    with serving(write_models(tmp_path, model=booster)) as server:
        together = server.invoke("\n".join([*rows, "0", "0"]), "text/libsvm").text.split("\n")
        alone = [server.invoke(row, "text/libsvm").text for row in (*rows, "0", "0")]
    assert together == alone
    filled = np.full((2, 4), np.nan, np.float32)
    filled[:, 0] = filled[:, 2] = [0.5, -0.5]
    assert np.array_equal(np.array(alone[:2], np.float32), booster.predict(xgb.DMatrix(filled)))


@pytest.mark.parametrize("objective", ["multi:softmax", "binary:hinge", "multi:softprob", "reg:squarederror"])
def test_several_models_answer_with_the_mean_or_the_class_of_most(tmp_path: Path, objective: str) -> None:
    labels = CLASSES if objective.startswith("multi") else (CLASSES > 0).astype(float)
    extra = {"num_class": 3} if objective.startswith("multi") else {}
    boosters = {
        f"model-{seed}": train(objective, labels, seed=seed, subsample=0.3, eta=2.0, **extra)
        for seed in range(3)
    }
    outputs = np.stack([booster.predict(xgb.DMatrix(ROWS)) for booster in boosters.values()])
    if objective in {"multi:softmax", "binary:hinge"}:
        expected = np.array([np.bincount(votes.astype(int)).argmax() for votes in outputs.T], float)
    else:
        expected = outputs.mean(axis=0)
    base = write_models(tmp_path, **boosters)
    with serving(base) as server:
        found = _numbers(server.invoke(as_csv(ROWS)).text)
        assert np.allclose(found, expected, rtol=0, atol=1e-6)
    with serving(base, SAGEMAKER_INFERENCE_ENSEMBLE="false") as server:
        assert np.array_equal(_numbers(server.invoke(as_csv(ROWS)).text), outputs[0])


def test_a_batch_transform_has_a_line_for_each_record_whatever_it_accepts(tmp_path: Path) -> None:
    environment = {"SAGEMAKER_BATCH": "true", "SAGEMAKER_MAX_PAYLOAD_IN_MB": "100"}
    large = np.tile(ROWS, (1000, 1))
    with serving(write_models(tmp_path, model=SOFTPROB), **environment) as server:
        assert json.loads(server.request("GET", "/execution-parameters").body)["MaxPayloadInMB"] == 100
        reply = server.invoke(as_csv(large))
        expected = SOFTPROB.predict(xgb.DMatrix(ROWS))
        assert reply.status == 200, reply.text[:500]
        lines = reply.text.split("\n")
        assert (len(lines), lines[-1]) == (len(large) + 1, "")
        assert np.array_equal(_numbers(reply.text.strip())[-300:], expected)
        lines = server.invoke(as_csv(ROWS), accept="application/json").text.split("\n")
        assert (len(lines), lines[-1]) == (301, "")
        assert json.loads(lines[0]) == {"score": expected[0].tolist()}


def test_keys_are_selected(tmp_path: Path) -> None:
    keys = "predicted_label,labels,probability,probabilities,raw_score,raw_scores,predicted_score"
    with serving(write_models(tmp_path, model=SOFTPROB), SAGEMAKER_INFERENCE_OUTPUT=keys) as server:
        reply = json.loads(server.invoke(as_csv(ROWS[:2]), accept="application/json").body)
        lines = server.invoke(as_csv(ROWS[:1])).text.split("\n")
    scores = SOFTPROB.predict(xgb.DMatrix(ROWS[:2]))
    first = scores[0].tolist()
    assert reply["predictions"][0] == {
        "predicted_label": int(scores[0].argmax()),
        "labels": [0, 1, 2],
        "probability": max(first),
        "probabilities": first,
        "raw_score": max(first),
        "raw_scores": first,
        "predicted_score": None,
    }
    assert lines[0].startswith(f'{int(scores[0].argmax())},"[0, 1, 2]",{max(first)!r},"[')


def test_classes_that_were_words_are_named(tmp_path: Path) -> None:
    words = ["red", "blue", "green"]
    text = "colour,a,b\n" + "".join(f"{words[row % 3]},{row % 3},{row % 5}\n" for row in range(90))
    settings = {"objective": "multi:softprob", "num_round": 5, "class_labels": "auto"}
    base = write_opt_ml(tmp_path, hyperparameters=settings, channels={"train": text.encode()})
    assert work(base).code == 0
    with serving(base, SAGEMAKER_INFERENCE_OUTPUT="predicted_label,labels") as server:
        reply = json.loads(server.invoke("a,b\n0,1\n2,3\n", accept="application/json").body)
        plain = server.invoke("a,b\n1,1\n").text
        codes = np.load(io.BytesIO(server.invoke("a,b\n0,1\n2,3\n", accept="application/x-npy").body))
    order = ["blue", "green", "red"]
    assert reply["predictions"] == [
        {"predicted_label": "red", "labels": order},
        {"predicted_label": "green", "labels": order},
    ]
    assert plain.startswith("blue,")
    assert codes[:, 0].tolist() == [2, 1]


def test_contributions_add_up_to_the_margin(tmp_path: Path) -> None:
    environment = {"SAGEMAKER_INFERENCE_OUTPUT": "contributions,leaf"}
    with serving(write_models(tmp_path, model=BINARY), **environment) as server:
        reply = json.loads(server.invoke(as_csv(ROWS[:5]), accept="application/json").body)
    margins = BINARY.predict(xgb.DMatrix(ROWS[:5]), output_margin=True)
    found = [sum(row["contributions"]) for row in reply["predictions"]]
    assert np.allclose(found, margins, atol=1e-5)
    assert len(reply["predictions"][0]["leaf"]) == 8


def test_a_trained_model_is_served_with_its_names_words_and_label(tmp_path: Path) -> None:
    words = ["red", "blue", "green"]
    table = [(index % 7, words[index % 3], index % 5) for index in range(200)]
    text = "y,colour,size\n" + "".join(f"{y},{colour},{size}\n" for y, colour, size in table)
    base = write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 5, "categorical_columns": "colour", "label_column": "y"},
        channels={"train": csv(text.encode())},
    )
    outcome = run_train(base)
    booster = outcome.booster()
    with serving(base) as server:
        named = server.invoke(text).text
        swapped = server.invoke(
            "size,colour\n" + "".join(f"{size},{colour}\n" for _, colour, size in table)
        ).text
        plain = server.invoke("".join(f"{colour},{size}\n" for _, colour, size in table)).text
    order = ["blue", "green", "red"]
    codes = np.array([(order.index(colour), size) for _, colour, size in table], np.float32)
    expected = booster.inplace_predict(codes, validate_features=False)
    for found in (named, swapped, plain):
        assert np.array_equal(np.array(found.split("\n"), np.float32), expected)
    assert json.loads(booster.attr("smxgb") or "")["label"] == "y"


def _numbers(text: str) -> npt.NDArray[np.float32]:
    found = np.array([line.split(",") for line in text.split("\n")], float).astype(np.float32)
    return found if found.shape[1] > 1 else found.ravel()
