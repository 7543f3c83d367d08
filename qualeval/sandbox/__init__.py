"""Runs programs that nobody trusts: code + stdin + limits -> bytes, status, usage."""
