"""The publication check: what of a run may go on a public page, and why the rest may not.

    from qualeval.publish import publish_run, publish_command, verify_bundle, is_bundle

A public copy is built from a schema, text by text: what must not be seen is taken out (redact),
the text of a record is left out (withhold), or a file stays (hold): the least of them that is safe.
"""

from qualeval.publish.check_bundle import bundle_summary, verify_bundle
from qualeval.publish.publishing import Published, is_bundle, publish_command, publish_run

__all__ = [
    "Published",
    "bundle_summary",
    "is_bundle",
    "publish_command",
    "publish_run",
    "verify_bundle",
]
