"""HumanJudge: people vote on pairs, and judges are ranked by how well they agree."""
