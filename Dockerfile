# The image of gpugate: `make image`. docs/image.md says what is in it, how the bases are pinned and how it is proven.

# Debian builds its Python with profile-guided and link-time optimisation, as the official python images do.
ARG PYTHON=3.13
ARG BUILD_IMAGE=docker.io/library/python:3.13.15-slim-trixie
ARG RUNTIME_IMAGE=gcr.io/distroless/python3-debian13:nonroot

FROM ${BUILD_IMAGE} AS build
ARG PYTHON
ARG SOURCE_DATE_EPOCH=0
# A mirror of the package index may be named; the hashes hold for it too.
ARG PIP_INDEX_URL
WORKDIR /build
COPY requirements/build.txt requirements/runtime.txt requirements/
COPY image/install.py image/
COPY pyproject.toml setup.py README.md ./
COPY src src
COPY certs certs
COPY policies policies
COPY webhook webhook
RUN python${PYTHON} -I image/install.py /opt/gpugate --interpreter /usr/bin/python${PYTHON}

# No shell, no package manager and no pip in it.
FROM ${RUNTIME_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
ARG RUNTIME_IMAGE
LABEL org.opencontainers.image.title="gpugate" \
      org.opencontainers.image.description="Kubernetes admission webhook and policy checks for GPU platforms on Karpenter, KEDA and DRA" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
COPY --from=build /opt/gpugate /opt/gpugate
ENV PATH=/opt/gpugate/bin:/usr/bin
USER 65532:65532
WORKDIR /
# Ends the build when the Python of this base cannot import what was installed for another.
RUN ["/opt/gpugate/bin/python", "-IB", "-c", "import gpugate.webhook.admission.serve, kubernetes.client"]
EXPOSE 8443 8081
ENTRYPOINT ["/opt/gpugate/bin/gpugate"]
CMD ["serve"]
