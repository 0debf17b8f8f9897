"""Starts HumanJudge on one machine as one process tree. Plain Python without Django."""
