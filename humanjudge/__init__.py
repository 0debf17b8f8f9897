"""HumanJudge: people vote on pairs, and judges are ranked by how well they agree."""

from humanjudge.celery import app as celery_app

__all__ = ["celery_app"]
