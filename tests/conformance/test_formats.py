"""The same rows in every format and input mode: jobs, and the models they leave."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost as xgb
from sklearn.datasets import dump_svmlight_file, load_diabetes
from tests.opt_ml import Outcome, Source, csv, libsvm, parquet, recordio, run_train, write_opt_ml
from tests.recordio import framed, record, tensor
from tests.work import work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SETTINGS: dict[str, object] = {"num_round": 6, "max_depth": 3}


def table() -> pd.DataFrame:
    """Return a table of which some cells are missing."""
    frame = load_diabetes(as_frame=True, scaled=False).frame.astype(np.float32)
    frame = frame[["target", *frame.columns[:-1]]]
    frame.iloc[::5, 3] = np.nan
    frame.iloc[3::7, 8] = np.nan
    return frame


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def packed(source: Source, pack: Callable[[bytes], bytes]) -> Source:
    return replace(source, files={path: pack(content) for path, content in source.files.items()})


def gzip_members(data: bytes) -> bytes:
    return gzip.compress(data[:999]) + gzip.compress(b"") + gzip.compress(data[999:])


def mode(source: Source, name: str, **settings: str) -> Source:
    return replace(source, settings={"TrainingInputMode": name, **settings})


def job(
    base: Path,
    settings: dict[str, object],
    run: Callable[[Path], Outcome] = work,
    **channels: Source,
) -> Outcome:
    """Run a job; a channel in Pipe mode gets a FIFO and somebody who writes to it."""
    write_opt_ml(base, hyperparameters=settings, channels=channels)
    writers: dict[Path, threading.Thread] = {}
    for name, source in channels.items():
        if source.settings.get("TrainingInputMode") == "Pipe":
            shutil.rmtree(base / "input/data" / name)
            fifo = base / "input/data" / f"{name}_0"
            os.mkfifo(fifo)
            writers[fifo] = threading.Thread(target=send, args=(fifo, source.files.values()), daemon=True)
            writers[fifo].start()
    done = run(base)
    for fifo, writer in writers.items():
        # A job that was refused has left its writer waiting for somebody who reads.
        os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
        writer.join(30)
    return done


def send(fifo: Path, contents: Iterable[bytes]) -> None:
    with suppress(BrokenPipeError), fifo.open("wb") as stream:
        for content in contents:
            stream.write(content)


def trees(done: Outcome) -> bytes:
    """Return the model without what names the format: column names, libsvm's first index, the label."""
    assert done.code == 0, done.log
    booster = done.booster()
    booster.feature_names = None
    booster.feature_types = None
    booster.set_attr(libsvm_indexing=None, smxgb=None)
    return bytes(booster.save_raw("ubj"))


def formats() -> dict[str, Source]:
    frame = table()
    text, svm = csv(frame), libsvm(frame)
    dense, sparse = recordio(frame, sparse=False), recordio(frame, sparse=True)
    return {
        "Parquet": parquet(frame),
        "Parquet in FastFile": mode(parquet(frame), "FastFile"),
        "CSV in gzip members": packed(text, gzip_members),
        "CSV in bzip2": packed(text, bz2.compress),
        "CSV in zstd, FastFile": mode(packed(text, zstd), "FastFile"),
        "libsvm from 0": svm,
        "libsvm from 1 in gzip": packed(libsvm(frame, first_index=1), gzip_members),
        "libsvm in FastFile": mode(svm, "FastFile"),
        "dense records": dense,
        "dense records of doubles in zstd": packed(recordio(frame, sparse=False, kind="d"), zstd),
        "sparse records in parts": recordio(frame, sparse=True, part_bytes=16),
        "sparse records in bzip2, FastFile": mode(packed(sparse, bz2.compress), "FastFile"),
        "CSV through a pipe": mode(text, "Pipe"),
        "CSV through a pipe in gzip": mode(packed(text, gzip_members), "Pipe", CompressionType="Gzip"),
        "CSV through a pipe, wrapped": mode(
            packed(text, lambda data: framed([data])), "Pipe", RecordWrapperType="RecordIO"
        ),
        "libsvm through a pipe": mode(svm, "Pipe"),
        "dense records through a pipe": mode(dense, "Pipe"),
        "sparse records through a pipe": mode(sparse, "Pipe"),
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the trees of the table as plain CSV, by a whole job."""
    source = csv(table())
    return trees(job(tmp_path_factory.mktemp("plain"), SETTINGS, run_train, train=source, validation=source))


@pytest.mark.parametrize("name", formats())
def test_a_table_gives_the_same_trees_in_every_format(tmp_path: Path, plain: bytes, name: str) -> None:
    source = formats()[name]
    assert trees(job(tmp_path, SETTINGS, train=source, validation=source)) == plain


@pytest.mark.parametrize("name", ["CSV through a pipe in gzip", "sparse records in parts"])
def test_a_whole_job_reads_pipes_and_files(tmp_path: Path, plain: bytes, name: str) -> None:
    source = formats()[name]
    assert trees(job(tmp_path, SETTINGS, run_train, train=source, validation=source)) == plain


def test_the_channels_of_a_job_may_be_of_different_formats(tmp_path: Path, plain: bytes) -> None:
    frame = table()
    for number, (train, validation) in enumerate(
        [
            (libsvm(frame, first_index=1), csv(frame)),
            (csv(frame), libsvm(frame)),
            (recordio(frame, sparse=True), parquet(frame)),
            (csv(frame, header=True), recordio(frame, sparse=False)),
        ]
    ):
        done = job(tmp_path / str(number), SETTINGS, train=train, validation=validation)
        assert trees(done) == plain


@pytest.mark.parametrize("method", ["exact", "approx", "hist"])
def test_sparse_rows_train_with_every_tree_method(tmp_path: Path, method: str) -> None:
    settings = {**SETTINGS, "tree_method": method}
    frame = table()
    sparse = trees(job(tmp_path / "sparse", settings, train=libsvm(frame)))
    assert sparse == trees(job(tmp_path / "dense", settings, train=csv(frame)))


def test_the_first_index_is_one_for_all_channels_and_stands_in_the_model(tmp_path: Path) -> None:
    def source(text: str) -> Source:
        return Source({"a.libsvm": text.encode()}, "libsvm")

    # Train alone looks as if it counted from 1.
    train, validation = source("1 1:1 2:5\n0 1:2 2:1\n" * 20), source("1 0:1 1:1\n0 1:2\n")
    done = job(tmp_path / "both", {"num_round": 2}, train=train, validation=validation)
    assert done.code == 0, done.log
    assert "libsvm: the first feature has the index 0 (the lowest index of all files)" in done.log
    assert done.booster().attr("libsvm_indexing") == "0"
    assert done.booster().num_features() == 3
    alone = job(tmp_path / "alone", {"num_round": 2}, train=train)
    assert "Train matrix has 40 rows and 2 columns" in alone.log
    assert alone.booster().attr("libsvm_indexing") == "1"
    forced = job(tmp_path / "forced", {"num_round": 2, "libsvm_indexing": "0"}, train=train).booster()
    assert (forced.attr("libsvm_indexing"), forced.num_features()) == ("0", 3)


@pytest.mark.parametrize(("train", "validation"), [(5, 2), (2, 5)])
def test_a_channel_may_lack_the_last_features(tmp_path: Path, train: int, validation: int) -> None:
    def source(width: int) -> Source:
        rows = np.random.default_rng(width).random((40, width)) + 0.1
        stream = io.BytesIO()
        dump_svmlight_file(rows, rows[:, 0], stream, zero_based=True)
        return Source({"a.libsvm": stream.getvalue()}, "libsvm")

    done = job(tmp_path, {"num_round": 2}, train=source(train), validation=source(validation))
    assert done.code == 0, done.log
    assert done.booster().num_features() == 5


def test_parquet_through_a_pipe_is_refused_in_one_sentence(tmp_path: Path) -> None:
    done = job(tmp_path, {"num_round": 2}, train=mode(parquet(table()), "Pipe"))
    assert done.code == 2
    assert done.failure == (
        "UserError: channel 'train': TrainingInputMode='Pipe' can't be: a Parquet file has its index at "
        "its end: use File or FastFile."
    )


WORDS = np.array([f"w{number:02}" for number in range(12)])


def categorical() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    word, digit = generator.integers(0, 12, 2000), generator.integers(0, 6, 2000)
    x = generator.normal(size=2000)
    target = np.sin(word * 7) + digit % 3 / 3 + x / 10 + generator.normal(size=2000) / 10
    return pd.DataFrame({"y": target, "x": x, "word": WORDS[word], "digit": digit}).astype(
        {"y": np.float32, "x": np.float32}
    )


def row_groups(frame: pd.DataFrame) -> bytes:
    """Return a Parquet file whose row groups have their categories in different orders."""
    stream = io.BytesIO()
    writer = None
    for number in range(4):
        part = frame[number * 500 : (number + 1) * 500]
        order = np.random.default_rng(number).permutation(WORDS)
        words = pa.array(pd.Categorical(part["word"], order), pa.dictionary(pa.int8(), pa.string()))
        columns = {**{name: part[name].to_numpy() for name in ("y", "x", "digit")}, "word": words}
        group = pa.table(columns).select(["y", "x", "word", "digit"])
        writer = writer or pq.ParquetWriter(stream, group.schema)
        writer.write_table(group)
    if writer:
        writer.close()
    return stream.getvalue()


def category_sources() -> dict[str, tuple[Source, dict[str, object]]]:
    frame = categorical()
    file = Source({"a.parquet": row_groups(frame)}, "parquet")
    digit: dict[str, object] = {"categorical_columns": "digit"}
    return {
        "Parquet": (file, {"enable_categorical": "true", **digit}),
        "Parquet in FastFile": (mode(file, "FastFile"), {"enable_categorical": "true", **digit}),
        "Parquet of words": (parquet(frame), {"categorical_columns": "word,digit"}),
        "CSV with names": (csv(frame, header=True), {"categorical_columns": "word,digit"}),
        "CSV": (csv(frame), {"categorical_columns": "[2, -1]"}),
        "CSV through a pipe": (mode(csv(frame), "Pipe"), {"categorical_columns": "[2, -1]"}),
    }


@pytest.mark.parametrize("form", [parquet, lambda frame: csv(frame, header=True)])
def test_a_column_of_categories_may_be_missing_in_all_rows(
    tmp_path: Path, form: Callable[[pd.DataFrame], Source]
) -> None:
    frame = categorical().assign(word=pd.Series(None, dtype="string"))
    some = frame[:50].assign(word="north")
    settings = {"num_round": 3, "categorical_columns": "word,digit"}
    write_opt_ml(
        tmp_path, hyperparameters=settings, channels={"train": form(frame), "validation": form(some)}
    )
    done = work(tmp_path)
    assert done.code == 0, done.log
    assert "Missing in every row of train: 'word', which is therefore no feature" in done.log
    used = done.booster().get_score()
    assert "digit" in used
    assert "word" not in used


@pytest.mark.parametrize("name", category_sources())
def test_categories_give_the_trees_of_the_table_in_one_piece(tmp_path: Path, name: str) -> None:
    source, settings = category_sources()[name]
    done = job(tmp_path, {"num_round": 8, **settings}, train=source)
    assert done.code == 0, done.log
    frame = categorical()
    frame["digit"] = frame["digit"].astype(str)
    features = frame.drop(columns="y").astype({"word": "category", "digit": "category"})
    matrix = xgb.QuantileDMatrix(features, frame["y"], enable_categorical=True)
    oracle = xgb.train({"seed_per_iteration": 1}, matrix, 8)
    booster = done.booster()
    assert booster.feature_types == ["float", "c", "c"]
    booster.feature_names = oracle.feature_names
    assert booster.get_dump(with_stats=True) == oracle.get_dump(with_stats=True)
    # The model holds the categories: codes of another order are understood.
    other = features.assign(word=features["word"].cat.reorder_categories(list(WORDS[::-1])))
    predicted = done.booster().predict(xgb.DMatrix(other, enable_categorical=True))
    np.testing.assert_array_equal(predicted, oracle.predict(matrix))


def test_a_category_that_train_lacks_is_missing_and_said_once(tmp_path: Path) -> None:
    frame = categorical()
    held_out = frame[:60].assign(word="new")
    settings = {"num_round": 4, "categorical_columns": "word,digit"}
    done = job(tmp_path, settings, train=csv(frame, header=True), validation=csv(held_out, header=True))
    assert done.code == 0, done.log
    assert done.log.count("Channel validation: 1 categories of 'word' are not in train") == 1


def test_a_dictionary_without_the_setting_is_refused_with_the_setting(tmp_path: Path) -> None:
    done = job(tmp_path, {"num_round": 2}, train=Source({"a.parquet": row_groups(categorical())}, "parquet"))
    assert done.code == 2
    assert done.failure is not None
    assert "enable_categorical=true" in done.failure


def ranked(shuffled: bool) -> pd.DataFrame:  # noqa: FBT001
    """Return rows of queries, several of which a full batch would cut."""
    generator = np.random.default_rng(5)
    query = np.repeat(generator.permutation(150) + 7, 12)
    features = generator.normal(size=(len(query), 3)).astype(np.float32)
    grade = np.clip(np.round(features[:, 0] + generator.normal(size=len(query)) / 2), 0, 4)
    frame = pd.DataFrame({"grade": grade, "query": query, **dict(zip("abc", features.T, strict=True))})
    frame = frame.sort_values("query", kind="stable")
    return frame.sample(frac=1, random_state=1) if shuffled else frame


def query_libsvm(frame: pd.DataFrame) -> Source:
    rows = frame.itertuples(index=False)
    lines = [f"{grade} qid:{int(query)} 0:{a} 1:{b} 2:{c}\n" for grade, query, a, b, c in rows]
    return Source({"a.libsvm": "".join(lines).encode()}, "libsvm")


def query_records(frame: pd.DataFrame) -> Source:
    rows = frame.itertuples(index=False)
    written = [record(tensor([a, b, c, query]), tensor([grade])) for grade, query, a, b, c in rows]
    return Source({"a.rec": framed(written)}, "recordio-protobuf")


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["CSV", "Parquet", "libsvm", "records"])
def test_ranking_keeps_the_rows_of_a_query_together_in_every_format(
    tmp_path: Path,
    name: str,
    shuffled: bool,  # noqa: FBT001
) -> None:
    frame = ranked(shuffled)
    sources: dict[str, tuple[Source, dict[str, object]]] = {
        "CSV": (csv(frame, header=True), {"group_column": "query"}),
        "Parquet": (parquet(frame), {"group_column": 1}),
        "libsvm": (query_libsvm(frame), {}),
        "records": (query_records(frame), {"group_column": 3}),
    }
    source, settings = sources[name]
    done = job(tmp_path, {"num_round": 5, "objective": "rank:ndcg", **settings}, train=source)
    assert done.code == 0, done.log
    assert ("sorted, so that those of a group stand together" in done.log) is shuffled
    ordered = frame.sort_values("query", kind="stable")
    features = ordered[["a", "b", "c"]].to_numpy()
    matrix = xgb.QuantileDMatrix(features, ordered["grade"], qid=ordered["query"])
    oracle = xgb.train({"seed_per_iteration": 1, "objective": "rank:ndcg"}, matrix, 5)
    probe = np.column_stack([features, np.full(len(features), np.nan)]) if name == "records" else features
    names = done.booster().feature_names
    np.testing.assert_allclose(
        done.booster().predict(xgb.DMatrix(probe, feature_names=names)), oracle.predict(matrix), rtol=1e-5
    )


def test_ranking_without_groups_is_refused(tmp_path: Path) -> None:
    source = Source({"a": b"1 0:1\n0 0:2\n"}, "libsvm")
    done = job(tmp_path, {"num_round": 2, "objective": "rank:ndcg"}, train=source)
    assert done.code == 2
    assert done.failure == (
        "UserError: channel train has no groups, and objective=rank:ndcg ranks the rows of each group: write "
        "qid: behind the labels of libsvm files, or set group_column."
    )


@pytest.mark.parametrize("name", ["CSV", "Parquet", "libsvm", "dense records", "sparse records"])
def test_survival_takes_its_bounds_from_every_format(tmp_path: Path, name: str) -> None:
    generator = np.random.default_rng(9)
    x = generator.normal(size=(300, 2)).astype(np.float32)
    lower = np.exp(x[:, 0]).astype(np.float32)
    upper = np.where(generator.random(300) < 0.3, np.inf, lower * 1.5).astype(np.float32)
    frame = pd.DataFrame({"lower": lower, "upper": upper, "a": x[:, 0], "b": x[:, 1]})
    labelled = pd.DataFrame({"y": lower, "a": x[:, 0], "b": x[:, 1], "lower": lower, "upper": upper})
    in_place: dict[str, object] = {"label_lower_column": 2, "label_upper_column": 3}
    named: dict[str, object] = {"label_lower_column": "lower", "label_upper_column": "upper"}
    sources = {
        "CSV": (csv(frame, header=True), named),
        "Parquet": (parquet(frame), named),
        "libsvm": (libsvm(labelled), in_place),
        "dense records": (recordio(labelled, sparse=False), in_place),
        "sparse records": (recordio(labelled, sparse=True), in_place),
    }
    source, settings = sources[name]
    done = job(tmp_path, {"num_round": 5, "objective": "survival:aft", **settings}, train=source)
    assert done.code == 0, done.log
    matrix = xgb.DMatrix(x, label_lower_bound=lower, label_upper_bound=upper)
    oracle = xgb.train({"seed_per_iteration": 1, "objective": "survival:aft"}, matrix, 5)
    names = done.booster().feature_names
    probe = x if done.booster().num_features() == 2 else np.column_stack([x, np.full((300, 2), np.nan)])
    np.testing.assert_allclose(
        done.booster().predict(xgb.DMatrix(probe, feature_names=names)), oracle.predict(matrix), rtol=1e-4
    )
