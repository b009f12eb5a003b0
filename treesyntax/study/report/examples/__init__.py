"""Outputs that are right here and wrong there, and the kinds of errors."""
