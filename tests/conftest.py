"""Settings of every property in the suite, wherever and however it is run.

The same examples on every machine, however slow it is, and none of them kept in a file. A property
sets only what is its own: how many examples, and which health checks do not apply to it.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")
