# The training image: VARIANT=cpu or VARIANT=gpu. Build it with scripts/build.
ARG BASE_IMAGE=debian:trixie-slim

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
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --require-hashes -r /requirements/build.txt \
    && pip install --require-hashes --no-build-isolation -r /requirements/${VARIANT}.txt

# Our own package apart, so that a change to it alone makes a small layer.
FROM build AS package
COPY pyproject.toml README.md /source/
COPY container /source/container
RUN pip install --no-deps --no-build-isolation --no-index --prefix /package /source \
    && python -m compileall -q /package

# The dependencies less what training never reads, with bytecode for what it does.
FROM build AS dependencies
COPY image /image
RUN pip uninstall --yes --quiet setuptools wheel \
    && find /opt/smxgb -name __pycache__ -exec rm -rf {} + \
    && /image/slim \
    && /image/compile

FROM ${BASE_IMAGE}
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/log/*
COPY --from=dependencies /opt/smxgb /opt/smxgb
COPY --from=package /package /opt/smxgb
ENV PATH=/opt/smxgb/bin:$PATH \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VARIANT=cpu
LABEL org.opencontainers.image.title="XGBoost training container for Amazon SageMaker" \
      org.opencontainers.image.licenses="Apache-2.0" \
      smxgb.variant=${VARIANT}
WORKDIR /opt/ml
CMD ["train"]
