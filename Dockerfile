FROM python:3.11-slim

# For another build of torch (CUDA, or a smaller one for the processor only):
#   docker build --build-arg PIP_OPTIONS="--extra-index-url ADDRESS" .
ARG PIP_OPTIONS=""

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

RUN useradd --create-home visitor
WORKDIR /app

# The requirements change rarely and take minutes: a layer of their own, before the code.
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check ${PIP_OPTIONS} -r requirements.txt

COPY . .
# Plotly's script is copied out of its package while the folder can still be written.
RUN python -c "from viz.explorer.assets import ensure_plotly; ensure_plotly()"
USER visitor
# A volume at /home/visitor/.cache keeps downloaded models from one container to the next.
RUN mkdir --parents /home/visitor/.cache

# Inside a container every address is the container's own. Name the hosts people will use
# in STREAMLIT_SERVER_ALLOWED_HOSTS when they differ from localhost.
ENV STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true
EXPOSE 8501

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import sys, urllib.request as r; sys.exit(r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4).read() != b'ok')"]

CMD ["python", "-m", "viz.server"]
