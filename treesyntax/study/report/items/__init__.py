"""Scores by test item in one small file, and the tables of a study from it and results.jsonl alone."""
