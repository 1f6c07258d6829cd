"""Run a job with the SageMaker Python SDK, version 2, in local mode: python v2.py JOB.json.

JOB.json: image, hosts (how many), hyperparameters, channels (name -> [folder, content type]), output and
work (empty folders); serve (a file of rows): the model is deployed too, and answers go to served.json.
"""

import json
import sys
from pathlib import Path

from sagemaker.deserializers import CSVDeserializer
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.local import LocalSession
from sagemaker.serializers import CSVSerializer

sys.excepthook = sys.__excepthook__  # the SDK's own draws an exception for minutes
job = json.loads(Path(sys.argv[1]).read_text())
session = LocalSession()
session.config = {
    "local": {
        "local_code": True,
        "region_name": "us-east-1",
        "container_root": job["work"],
        "container_config": {"shm_size": "1g"},
    }
}
estimator = Estimator(
    image_uri=job["image"],
    role="arn:aws:iam::111111111111:role/training",
    instance_type="local",
    instance_count=job["hosts"],
    sagemaker_session=session,
    output_path=f"file://{job['output']}",
    hyperparameters=job["hyperparameters"],
)
estimator.fit(
    {
        name: TrainingInput(f"file://{folder}", content_type=content_type)
        for name, (folder, content_type) in job["channels"].items()
    }
)

if "serve" in job:
    rows = Path(job["serve"])
    predictor = estimator.deploy(1, "local", serializer=CSVSerializer(), deserializer=CSVDeserializer())
    predicted = [float(row[0]) for row in predictor.predict(rows.read_text())]
    predictor.delete_endpoint()
    transformer = estimator.transformer(
        1,
        "local",
        strategy="MultiRecord",
        assemble_with="Line",
        max_payload=1,
        output_path=f"file://{job['output']}/transformed",
    )
    # In local mode the call returns when all is done; to wait would ask AWS for the log.
    transformer.transform(f"file://{rows.parent}", content_type="text/csv", split_type="Line", wait=False)
    transformed = [
        float(line)
        for path in sorted(Path(job["output"], "transformed").rglob("*.out"))
        for line in path.read_text().split()
    ]
    answers = {"predicted": predicted, "transformed": transformed}
    Path("served.json").write_text(json.dumps(answers))
