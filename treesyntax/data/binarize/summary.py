"""``binarize.json`` and the summary on screen: what was done, with what result."""

from __future__ import annotations

import argparse
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from treesyntax import __version__
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions
from treesyntax.data.binarize.write import Counts
from treesyntax.data.manifest import DICTIONARIES, MANIFEST, dictionary_file, labels_file
from treesyntax.data.pairs import Numbers, read_lengths, some
from treesyntax.files import sha256_of, write_json

# What has no influence on the files written.
NOT_RECORDED = ("command", "dest", "overwrite", "run", "workers")

Written = dict[tuple[str, str], Counts]
SHOWN = 20
"""Pairs with an empty side of which the numbers are kept."""


def write_manifest(
    folder: Path,
    args: argparse.Namespace,
    options: BinarizeOptions,
    written: Written,
    sizes: dict[str, int],
) -> None:
    """Write ``binarize.json``: ``written`` by split and language, ``sizes`` in symbols by language."""
    manifest = {
        "options": {k: v for k, v in sorted(vars(args).items()) if k not in NOT_RECORDED},
        "versions": {
            "treesyntax": __version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "sentencepiece": version("sentencepiece"),
        },
        "sides": {side.role: _describe(side, sizes[side.language]) for side in options.sides},
        DICTIONARIES: {name: sha256_of(folder / name) for name in _dictionary_files(options)},
        "splits": {
            split: {
                language: {**asdict(counts), "unknown_rate": _unknown_rate(counts)}
                for (written_split, language), counts in written.items()
                if written_split == split
            }
            for split in options.source.files
        },
        "pairs": {
            split: {"empty": len(empty), "first_empty": [int(i) + 1 for i in empty[:SHOWN]]}
            for split, empty in empty_pairs(folder, options).items()
        },
    }
    write_json(folder / MANIFEST, manifest, indent=2)


def _dictionary_files(options: BinarizeOptions) -> list[str]:
    """The names of the dictionaries of tokens and of labels."""
    labelled = [side for side in options.sides if side.encoding.labels]
    return [
        *(dictionary_file(side.language) for side in options.sides),
        *(labels_file(side.language) for side in labelled),
    ]


def empty_pairs(folder: Path, options: BinarizeOptions) -> dict[str, Numbers]:
    """The pairs of each split of which a side has no token; training uses them as they are."""
    return {split: read_lengths(folder, split).empty for split in options.source.files}


def _describe(side: SideOptions, symbols: int) -> dict[str, object]:
    model = side.encoding.model
    return {
        "language": side.language,
        "format": side.encoding.format_name,
        "view": side.encoding.linearization,
        "trees": side.has_trees,
        "labels": side.encoding.labels,
        "control": side.encoding.control if side.has_trees else None,
        "subword_policy": side.encoding.policy if side.has_trees else None,
        "subword_units": side.encoding.units or None,
        "subword_model": model.name if model else None,
        "subword_remarks": side.subword_remarks,
        "dictionary_symbols": symbols,
        "sha256": {str(path): sha256_of(path) for path in side.inputs},
    }


def _unknown_rate(counts: Counts) -> float:
    return round(counts.unknown / max(1, counts.tokens), 6)


def summarise(
    options: BinarizeOptions, written: Written, sizes: dict[str, int], seconds: float
) -> str:
    """The counts as a table, for people."""
    lines = [f"{'':14}{'sentences':>12}{'tokens':>12}{'nodes':>12}{'unknown':>10}{'empty':>8}"]
    for (split, language), counts in written.items():
        lines.append(
            f"{split + ' ' + language:14}{counts.sentences:12,}{counts.tokens:12,}"
            f"{counts.nodes:12,}{_unknown_rate(counts):10.2%}{counts.empty:8,}"
        )
    for split, empty in empty_pairs(options.dest, options).items():
        if len(empty):
            lines.append(
                f"{split}: {len(empty):,} pairs have a side without tokens (line {some(empty)}); no step "
                "leaves them out"
            )
    for side in options.sides:
        model = side.encoding.model
        note = f", subwords {model.name}" if model else ""
        if options.subword_vocab and side.wants_model:
            note = ", no subwords: its trees have no words"
        lines.append(f"dictionary {side.language}: {sizes[side.language]:,} symbols{note}")
    remark_lists = [counts.remarks for counts in written.values()]
    remark_lists += [side.subword_remarks for side in options.sides]
    remarks = dict.fromkeys(remark["text"] for remarks in remark_lists for remark in remarks)
    return "\n".join([*lines, *remarks, f"{options.dest} written in {seconds:.1f} s"])
