from __future__ import annotations

import pytest

from smxgb.errors import UserError
from smxgb.serving.endpoint import Endpoint


def test_the_defaults_are_those_of_awss_image() -> None:
    endpoint = Endpoint.read({})
    assert (endpoint.port, endpoint.largest, endpoint.accept) == (8080, 6 << 20, "text/csv")
    assert str(endpoint.models) == "/opt/ml/model"


@pytest.mark.parametrize(
    ("environ", "port"),
    [
        ({"SAGEMAKER_BIND_TO_PORT": "9000"}, 9000),
        ({"SAGEMAKER_SAFE_PORT_RANGE": "21000-21100"}, 21000),
        ({"SAGEMAKER_SAFE_PORT_RANGE": "8000-9000"}, 8080),
        ({"SAGEMAKER_SAFE_PORT_RANGE": "21000-21100", "SAGEMAKER_BIND_TO_PORT": "9000"}, 9000),
    ],
)
def test_the_port_is_the_one_that_sagemaker_wants(environ: dict[str, str], port: int) -> None:
    assert Endpoint.read(environ).port == port


@pytest.mark.parametrize(
    ("environ", "largest"),
    [
        ({"MAX_CONTENT_LENGTH": "20971520"}, 20 << 20),
        ({"SAGEMAKER_BATCH": "true", "SAGEMAKER_MAX_PAYLOAD_IN_MB": "100"}, 100 << 20),
        ({"SAGEMAKER_BATCH": "true", "SAGEMAKER_MAX_PAYLOAD_IN_MB": "0"}, None),
        ({"SAGEMAKER_BATCH": "true"}, 6 << 20),
        ({"SAGEMAKER_MAX_PAYLOAD_IN_MB": "100"}, 6 << 20),
    ],
)
def test_a_batch_transform_has_the_limit_of_its_job(environ: dict[str, str], largest: int | None) -> None:
    assert Endpoint.read(environ).largest == largest


def test_all_wrong_values_are_named_at_once() -> None:
    environ = {
        "SAGEMAKER_MODEL_SERVER_WORKERS": "many",
        "SAGEMAKER_MODEL_SERVER_TIMEOUT": "-1",
        "SAGEMAKER_BATCH": "maybe",
        "SAGEMAKER_SAFE_PORT_RANGE": "x",
    }
    with pytest.raises(UserError) as raised:
        Endpoint.read(environ)
    assert len(raised.value.mistakes) == 4
    assert all(any(name in text for text in raised.value.mistakes) for name in environ)
