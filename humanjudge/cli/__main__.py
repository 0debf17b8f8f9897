"""`python -m humanjudge.cli`, which is what `.venv/bin/humanjudge` runs."""

import sys

try:
    from humanjudge.cli.main import main

    code = main()
except KeyboardInterrupt:  # before there was anything that could say so
    code = 130
sys.exit(code)
