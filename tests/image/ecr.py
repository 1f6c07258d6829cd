"""moto's server as an AWS whose ECR is the registry named first; the other arguments are moto's.

moto keeps no images: what it calls the account's registry is a host that is not there.
"""

from __future__ import annotations

import sys
from typing import Any

from moto.ecr.responses import ECRResponse
from moto.server import main

registry, *arguments = sys.argv[1:]
answered = ECRResponse.get_authorization_token


def get_authorization_token(self: ECRResponse) -> Any:
    """Answer as moto does, with the registry's own address."""
    answer = answered(self)
    for entry in answer.result["authorizationData"]:
        entry["proxyEndpoint"] = f"https://{registry}"
    return answer


ECRResponse.get_authorization_token = get_authorization_token
main(arguments)
