"""`python -m qualeval` is the command `qualeval`."""

from qualeval.cli import main

main()
