"""A real server under load, with bad clients, and at its end: no answer is wrong, no request is lost."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xgboost as xgb
from tests.serving import serving, wait_healthy, write_models

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.serving import Server

ROWS = np.random.default_rng(5).normal(size=(200, 4)).astype(np.float32)
BOOSTER = xgb.train({}, xgb.DMatrix(ROWS, ROWS[:, 0]), 10)
BOOSTER.feature_names = BOOSTER.feature_types = None
LINES = [",".join(map(repr, row)) for row in ROWS.tolist()]
EXPECTED = [repr(score) for score in BOOSTER.predict(xgb.DMatrix(ROWS)).tolist()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    base = write_models(tmp_path_factory.mktemp("load"), model=BOOSTER)
    with serving(base, SAGEMAKER_MODEL_SERVER_TIMEOUT="2") as it:
        yield it


def test_each_of_many_clients_gets_its_own_answer(server: Server) -> None:
    def client(number: int) -> list[tuple[int, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        replies = []
        for index in range(number, 200, 8):
            connection.request("POST", "/invocations", LINES[index], {"Content-Type": "text/csv"})
            replies.append((index, connection.getresponse().read().decode()))
        connection.close()
        return replies

    with ThreadPoolExecutor(8) as pool:
        replies = [reply for found in pool.map(client, range(8)) for reply in found]
    assert len(replies) == 200
    assert all(text == EXPECTED[index] for index, text in replies)


def test_malformed_bodies_are_refused_one_after_the_other(server: Server) -> None:
    chance = random.Random(0)  # noqa: S311 - the same bodies each time
    seeds = [
        "\n".join(LINES[:3]).encode(),
        b"0 1:2 3:4\n",
        json.dumps({"instances": ROWS[:2].tolist()}).encode(),
    ]
    types = ["text/csv", "text/libsvm", "application/json", "application/jsonlines", "application/x-npy",
             "application/x-parquet", "application/x-recordio-protobuf", ""]  # fmt: skip
    for _ in range(300):
        body = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 8)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        reply = server.invoke(bytes(body[: chance.randrange(1, len(body) + 1)]), chance.choice(types))
        assert reply.status in {200, 400, 415}, (body, reply.text)
    assert server.invoke(LINES[0]).text == EXPECTED[0]


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /invocations HTTP/1.1\r\ncontent-type: text/csv\r\ncontent-length: 100\r\n\r\n1,2",
        b"POST /invocations HTTP/1.1\r\ncontent-type: text/csv\r\ntransfer-encoding: chunked\r\n\r\n5\r\n1,2",
        b"POST /invocations HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET /ping HTTP/1.1\r\n" + b"x: y\r\n" * 20_000,
    ],
)
def test_a_client_that_stops_or_talks_nonsense_gets_a_refusal(server: Server, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(request_)
        status = client.recv(100).split(b" ")[1]
    assert status in {b"400", b"408"}


def test_memory_does_not_grow_with_the_number_of_requests(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def rounds(count: int) -> int:
        for index in range(count):
            connection.request("POST", "/invocations", LINES[index % 200], {"Content-Type": "text/csv"})
            connection.getresponse().read()
        return server.resident()

    before = rounds(1500)
    assert rounds(3000) - before < 4 << 20
    connection.close()


def test_no_request_is_lost_when_the_server_is_ended(tmp_path: Path) -> None:
    with serving(write_models(tmp_path, model=BOOSTER)) as server:
        outcomes: list[str] = []
        started = threading.Barrier(5)

        def client() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.connect()
            for number in range(100_000):
                if number == 20:
                    started.wait()
                try:
                    connection.request("POST", "/invocations", LINES[0], {"Content-Type": "text/csv"})
                except ConnectionRefusedError:
                    return
                response = connection.getresponse()
                outcomes.append(response.read().decode())

        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
        assert server.stop() == 0
        for thread in threads:
            thread.join()
    assert set(outcomes) == {EXPECTED[0]}


def test_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    with serving(write_models(tmp_path, model=BOOSTER)) as server:
        os.kill(server.worker(), signal.SIGKILL)
        wait_healthy(server)
        assert server.invoke(LINES[0]).text == EXPECTED[0]
        assert "A worker ended with signal 9. Another one takes its place." in server.log.read_text()


def test_a_large_batch_needs_no_memory_of_its_size(tmp_path: Path) -> None:
    environment = {"SAGEMAKER_BATCH": "true", "SAGEMAKER_MAX_PAYLOAD_IN_MB": "100"}
    with serving(write_models(tmp_path, model=BOOSTER), **environment) as server:
        body = ("\n".join(LINES) + "\n") * 5000  # 80 MB
        assert server.invoke(("\n".join(LINES) + "\n") * 500).status == 200
        before = server.resident()
        reply = server.invoke(body)
        grown = server.resident() - before
    assert reply.text.split("\n")[-201:] == [*EXPECTED, ""]
    assert reply.text.count("\n") == 200 * 5000
    assert grown < len(body) // 2
