"""Methods that change the loss in training and nothing else: no tree is needed afterwards."""
