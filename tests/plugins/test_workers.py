"""Processes that read batches end with their epoch, however many epochs there are."""

import multiprocessing
import time
from pathlib import Path

from plugins.test_plugin import data  # noqa: F401, a fixture

from fairseq_plugins.task import TreeTranslationConfig, TreeTranslationTask


def test_epochs_leave_no_processes_behind(data: Path):  # noqa: F811
    """As with --update-epoch-batch-itr, where each epoch has batches of its own."""
    general = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    config = TreeTranslationConfig(
        data=str(data / "bin"), source_lang="for", target_lang="lambda", **general
    )
    task = TreeTranslationTask.setup_task(config)
    task.load_dataset("train")
    epochs = []
    for epoch in range(1, 4):
        batches = task.get_batch_iterator(
            task.dataset("train"),
            max_sentences=4,
            max_positions=(1024, 1024),
            num_workers=1,
            epoch=epoch,
            data_buffer_size=10,
            update_epoch_batch_itr=True,
        )
        read = batches.next_epoch_itr(shuffle=False)
        assert sum(batch["nsentences"] for batch in read) == len(task.dataset("train"))
        epochs.append((batches, read))  # as a cycle keeps them until Python looks for cycles
    ended = time.monotonic() + 20
    while multiprocessing.active_children() and time.monotonic() < ended:
        time.sleep(0.05)
    assert not multiprocessing.active_children()
