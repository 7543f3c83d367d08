"""Judges programs: finds the code in a reply, runs every test, compares outside the sandbox."""
