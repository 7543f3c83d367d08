"""GPQA 30 with thinking on: 30 of the 198 questions of GPQA Diamond, in the same option order and
with the same prompt, so that the difference to the row `gpqa` is thinking alone.
"""

from qualeval.tasks.base import Draw
from qualeval.tasks.gpqa import SOURCE, item
from qualeval.tasks.letters import LetterTask

TASK = LetterTask(
    name="think",
    title="GPQA 30, thinking on",
    subtitle="30 questions, limit 16,384 tokens",
    max_tokens=16_384,
    thinking="on",
    source=SOURCE,
    draw=Draw("gpqa-30", 30),
    from_official=item,
)
