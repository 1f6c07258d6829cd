# The training image: VARIANT=cpu or VARIANT=gpu. Build it with scripts/build, which fills in the arguments.
ARG BASE_IMAGE=debian:trixie-slim

# What the finished image has of Debian.
FROM ${BASE_IMAGE} AS base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/log/*

# Every dependency, from locked and hashed files, with what builds those that come as source.
FROM ${BASE_IMAGE} AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        binutils ca-certificates gcc libc6-dev python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/smxgb
ENV PATH=/opt/smxgb/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore
ARG VARIANT=cpu
COPY requirements/build.txt requirements/${VARIANT}.txt /requirements/
# A configuration of pip's, and the certificates that it names, may be given as secrets: no layer has them.
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca-certificates \
    pip install --require-hashes -r /requirements/build.txt \
    && pip install --require-hashes --no-build-isolation -r /requirements/${VARIANT}.txt

# Our own package apart, so that a change to it alone makes a small layer.
FROM build AS package
COPY pyproject.toml README.md LICENSE /source/
COPY container /source/container
RUN pip install --no-deps --no-build-isolation --no-index --prefix /package /source \
    && python -m compileall -q /package \
    # As process 1, a program never gets a signal that comes before it handles it, unless the signal is blocked.
    && sed -i '1s|^#!|#!/usr/bin/env -S --block-signal=TERM,INT,HUP,QUIT,USR1,USR2 |' /package/bin/train

# The dependencies less what training never reads, with bytecode for what it does.
FROM build AS dependencies
COPY image/slim image/compile image/leave_out*.txt /image/
RUN pip uninstall --yes --quiet setuptools wheel \
    && find /opt/smxgb -name __pycache__ -exec rm -rf {} + \
    && /image/slim \
    && /image/compile

# The list of all components: what Python's and Debian's package managers say of the finished image.
FROM dependencies AS sbom
COPY requirements/sbom.txt /requirements/
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca-certificates \
    python3 -m venv /sbom && /sbom/bin/pip install --require-hashes -r /requirements/sbom.txt
COPY image/sbom /image/
COPY --from=package /package /opt/smxgb
COPY --from=base /var/lib/dpkg /debian
ARG VARIANT=cpu
ARG VERSION=unknown
RUN /sbom/bin/cyclonedx-py environment --no-validate --output-reproducible /opt/smxgb/bin/python \
    | /sbom/bin/python /image/sbom /debian "${VARIANT}" "${VERSION}" /sbom.cdx.json

FROM base
COPY --from=dependencies /opt/smxgb /opt/smxgb
COPY --from=package /package /opt/smxgb
COPY --from=sbom /sbom.cdx.json /opt/smxgb/sbom.cdx.json
COPY LICENSE /opt/smxgb/LICENSE
# Nothing is written at run time but below /opt/ml and /tmp: no bytecode, and no compiled kernels of CuPy.
ENV PATH=/opt/smxgb/bin:$PATH \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 CUPY_CACHE_IN_MEMORY=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VARIANT=cpu
ARG VERSION=unknown
ARG COMMIT=unknown
ARG XGBOOST=unknown
ARG CUDA=none
ENV SMXGB_IMAGE="${VERSION} ${VARIANT} ${COMMIT}"
LABEL org.opencontainers.image.title="XGBoost training container for Amazon SageMaker" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${COMMIT} \
      smxgb.variant=${VARIANT} \
      smxgb.xgboost=${XGBOOST} \
      smxgb.cuda=${CUDA} \
      com.amazonaws.sagemaker.capabilities.multi-models=true \
      com.amazonaws.sagemaker.capabilities.accept-bind-to-port=true
EXPOSE 8080
WORKDIR /opt/ml
CMD ["train"]
