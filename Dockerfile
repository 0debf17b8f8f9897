# HumanJudge with all that it needs, for any of its programs: `humanjudge serve web`, `… sealer`,
# `… judging`, `… rendering`, `… beat`. compose.yaml runs them together.

FROM python:3.13-slim-bookworm AS build
RUN python -m venv /opt/humanjudge
ENV PATH=/opt/humanjudge/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
# Changes less often than what is below it.
COPY requirements.txt .
RUN pip install -r requirements.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY humanjudge humanjudge
COPY voting voting
COPY judge_eval judge_eval
COPY reports reports
COPY templates templates
COPY static static
RUN pip install --no-deps .
WORKDIR /
RUN HUMANJUDGE_DATA=/tmp/data STATIC_ROOT=/opt/humanjudge/static humanjudge manage collectstatic --noinput

FROM python:3.13-slim-bookworm
# Debian keeps no old versions to pin. Cairo is what the second renderer of drawings (SVG_RENDERER=cairosvg) draws with.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libcairo2 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin humanjudge \
 && install --directory --owner=10001 --group=10001 --mode=700 /data
COPY --from=build /opt/humanjudge /opt/humanjudge
ENV PATH=/opt/humanjudge/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HUMANJUDGE_DATA=/data \
    STATIC_ROOT=/opt/humanjudge/static \
    HOST=0.0.0.0 \
    PORT=8000
WORKDIR /tmp
USER 10001:10001
VOLUME /data
EXPOSE 8000
# `serve` refuses what `manage check --deploy` finds.
ENTRYPOINT ["humanjudge"]
CMD ["serve", "web"]
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=4 CMD ["humanjudge", "alive", "web"]
