"""Statistics of other libraries, to check ours by.

They are imported when they are first asked: that takes seconds, and each worker of a test run
reads all tests.
"""

import lazy_loader

evalica = lazy_loader.load("evalica")
metrics = lazy_loader.load("sklearn.metrics", suppress_warning=True)
