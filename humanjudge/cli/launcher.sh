#!/bin/sh
# .venv/bin/humanjudge: may be called from any folder, by any user, through a link to it.
self=$(readlink -f -- "$0")
root=${self%/.venv/bin/humanjudge}
export PYTHONPATH="$root"
# -P: a folder called humanjudge where it is called is not this one.
exec "$root/.venv/bin/python" -P -m humanjudge.cli "$@"
