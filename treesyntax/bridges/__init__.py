"""Methods in models that are not this package's: Hugging Face's, PyTorch's, and FlexAttention.

Each bridge uses the public interfaces of its library alone, and refuses what it cannot carry.
"""
