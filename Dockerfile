# docker build -t attention-visualizer .                        PyTorch for the processor
# docker build -t attention-visualizer --build-arg TORCH=cuda . PyTorch with CUDA; run with --gpus all
# docker build -t attention-visualizer --build-arg CLUSTER=ray . with Ray: the app and the workers of its cluster,
#                                                               from one image (docs/kubernetes.md)
#
# docker run --read-only --tmpfs /tmp -p 127.0.0.1:8501:8501 attention-visualizer
#
# A tag can be given to another image tomorrow. A digest cannot: --build-arg PYTHON=3.11-slim-bookworm@sha256:...
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS packages
ARG TORCH=cpu
ARG CLUSTER=""
# For pip, in place of uv: for instance another index that has the build wanted.
ARG PIP_OPTIONS=""
RUN python -m venv /opt/packages
# The packages change rarely and take minutes: layers of their own, before the code. First all but PyTorch,
# each by its hash; what stands there already is left as it is by the step that adds PyTorch.
COPY requirements.txt requirements.lock requirements-cluster.lock requirements-uv.lock /tmp/
RUN /opt/packages/bin/pip install --no-cache-dir --disable-pip-version-check ${PIP_OPTIONS} \
        --require-hashes --no-deps --only-binary :all: \
        --requirement /tmp/requirements.lock --constraint /tmp/requirements.txt
RUN if [ "${CLUSTER}" = ray ]; then \
        /opt/packages/bin/pip install --no-cache-dir --disable-pip-version-check ${PIP_OPTIONS} \
            --require-hashes --no-deps --only-binary :all: --requirement /tmp/requirements-cluster.lock; \
    fi
# uv knows where PyTorch's builds for the processor only are; the package index has those with CUDA.
RUN torch=$(grep ^torch== /tmp/requirements.txt) \
    && if [ "${TORCH}" = cpu ] && [ -z "${PIP_OPTIONS}" ]; then \
        pip install --no-cache-dir --disable-pip-version-check \
            --require-hashes --no-deps --only-binary :all: --requirement /tmp/requirements-uv.lock \
        && uv pip install --no-cache --python /opt/packages/bin/python --torch-backend cpu "${torch}"; \
    else \
        /opt/packages/bin/pip install --no-cache-dir --disable-pip-version-check ${PIP_OPTIONS} "${torch}"; \
    fi

FROM python:${PYTHON}
# Nothing runs as root. /models is for downloaded models, where the owner allows them: mount it.
RUN useradd --uid 10001 --user-group --create-home visitor \
    && install --directory --owner=visitor --group=visitor /models
COPY --from=packages /opt/packages /opt/packages
WORKDIR /app
COPY . .
# Compiled here: at run time nothing is written beside the code.
RUN /opt/packages/bin/python -m compileall -q app.py pages viz model
ENV PATH=/opt/packages/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ATTENTION_CACHE=/models \
    HF_HOME=/models/huggingface \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true
# Name the hosts people will use in STREAMLIT_SERVER_ALLOWED_HOSTS, with spaces between them.
USER visitor
EXPOSE 8501
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "deploy.healthy"]
CMD ["python", "-m", "viz.server"]
