"""The command line: talks to a HumanJudge over HTTP and knows nothing of what is behind it."""
