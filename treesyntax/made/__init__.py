"""What was made before, of what, and whether it may be used again: digests, locks, identities, records."""
