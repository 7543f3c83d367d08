"""qualeval: how well a locally served LLM answers, in numbers to publish and defend."""

__version__ = "0.1.0"
