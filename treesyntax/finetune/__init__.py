"""Finetuning of pretrained models with trees: data, a bridge and outputs around transformers' Trainer."""
