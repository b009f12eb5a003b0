"""Analyses of trained models; they read checkpoints as data, without fairseq."""
