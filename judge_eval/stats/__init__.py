"""How well do judges agree with people: metrics as pure functions, usable without Django.

Labels go in as plain mappings, ``{human: {item: label}}`` and ``{item: label}``, or as rows. Every
figure comes with its n, what was left out and why, and a 95 % interval where there is one; what
cannot be computed is None with a reason. docs/metrics.md has the formulas.

Examples
--------
>>> from judge_eval.stats import classification
>>> judge = {"q1": "A", "q2": "B", "q3": "tie"}
>>> people = {"ann": {"q1": "A", "q2": "B", "q3": "A"}, "ben": {"q1": "A", "q3": None}}
>>> accuracy = classification(judge, people).figure
>>> round(accuracy.value, 4), accuracy.n, accuracy.left_out[0].why
(0.8333, 4, "the person's label is missing")


Names are imported when they are first used (`__init__.pyi` has them all), so that a page that needs
one interval does not wait for numpy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
