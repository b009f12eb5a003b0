"""Show what a reader makes of a file, or sentences of binarized data with their trees.

Of a FILE with its --format: how many trees, words and labels, how deep, the first tree, and what the
reader found odd, or left out and counts (docs/data.md). Of a table (.tsv) the second column is read. --format text is for text.

Of the folder of a study, of a run, or of DATA: each line is a node, indented by its depth. Columns: number of the node, its parent,
its slot among the parent's children, and the tokens that it stands for, each with its position.

Examples:

  treesyntax inspect train.conllu --format conllu
  treesyntax inspect runs/my --split valid
  treesyntax inspect data-bin/en-sv --split train --side source --index 0 --count 3
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from treesyntax.data.encoding import SIDES, TEXT
from treesyntax.errors import InputError, OptionError
from treesyntax.jobs.completion import suggest
from treesyntax.trees.names import FORMATS

if TYPE_CHECKING:
    from treesyntax.data.dictionary import Dictionary
    from treesyntax.data.token_files import TokenData
    from treesyntax.data.tree_store import StoredTree

INDENT = "  "
DEEPEST_INDENT = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "data",
        metavar="FILE|STUDY|RUN|DATA",
        help="a file of trees; a study's folder, for all that its rows read; a run's; or one that treesyntax "
        "binarize wrote",
    )
    notation = parser.add_argument(
        "--format", metavar="FORMAT", help=f"format of a FILE: {', '.join((TEXT, *FORMATS))}"
    )
    suggest(notation, lambda: (TEXT, *FORMATS))
    parser.add_argument(
        "--split", default="train", help="train, valid or test (default %(default)s)"
    )
    parser.add_argument(
        "--side", choices=SIDES, default="source", help="side to show (default %(default)s)"
    )
    parser.add_argument(
        "--index",
        type=int,
        default=0,
        help="number of the first sentence, from 0 (default %(default)s)",
    )
    parser.add_argument(
        "--count", type=int, default=1, help="how many sentences (default %(default)s)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print a JSON object a sentence, one a line"
    )


def run(args: argparse.Namespace) -> int:
    """Run ``treesyntax inspect``.

    Raises:
        InputError: if there is no such split or a file is damaged.
        OptionError: if there is no such sentence.
    """
    if args.format is not None or Path(args.data).is_file():
        return _inspect_file(args)
    if args.count < 1:
        raise OptionError(f"--count {args.count}: at least 1 is needed")
    for folder in _folders(Path(args.data)):
        _inspect_folder(folder, args)
    return 0


def _folders(folder: Path) -> list[Path]:
    """The folders of prepared data of a study or a run; a folder of such data itself."""
    from treesyntax.study.trained import prepared_folders, studies_here, study_of

    if study_of(folder) is not None:
        return prepared_folders(folder)
    if not folder.is_dir():
        raise InputError(
            folder, None, "is no folder of binarized data", f"check the name{studies_here(folder)}"
        )
    return [folder]


def _inspect_folder(folder: Path, args: argparse.Namespace) -> None:
    # --help needs none of these.
    from treesyntax.data.manifest import check_tokens, dictionary_file, read_dictionary
    from treesyntax.data.token_files import TokenData, find_prefix
    from treesyntax.data.tree_store import TreeStore

    prefix = find_prefix(folder, args.split, args.side)
    shown_as = prefix.name if folder == Path(args.data) else str(prefix)
    data = TokenData(prefix)
    if not 0 <= args.index < len(data):
        raise OptionError(f"--index {args.index}: {prefix.name} has sentences 0 to {len(data) - 1}")
    dictionary_path = prefix.with_name(dictionary_file(prefix.name.rpartition(".")[2]))
    dictionary = read_dictionary(dictionary_path)
    store_path = prefix.with_name(f"{prefix.name}.tree")
    store = TreeStore(store_path) if store_path.exists() else None
    if store is not None:
        store.check_files(data)
    check_tokens(data)
    for sentence in range(args.index, min(args.index + args.count, len(data))):
        tokens = _tokens(data, sentence, dictionary, dictionary_path)
        if args.json:
            shown = {
                "index": sentence,
                "tokens": tokens,
                **_arrays(None if store is None else store[sentence]),
            }
            print(json.dumps(shown, ensure_ascii=False))
            continue
        print(f"{shown_as} {sentence}: {len(tokens)} tokens")
        print(" ".join(tokens))
        if store is not None:
            print("\n".join(draw(store[sentence], tokens)))


def _inspect_file(args: argparse.Namespace) -> int:
    from treesyntax.data.file_summary import summarise

    path = Path(args.data)
    if args.format is None:
        raise OptionError(
            f"{path} is a file: name its format with --format, one of {', '.join((TEXT, *FORMATS))}"
        )
    if path.is_dir():
        raise OptionError(f"{path} is a folder: --format is for a file")
    summary = summarise(path, args.format, to_parse=True)
    if args.json:
        print(json.dumps(summary.to_json(), ensure_ascii=False))
    else:
        print("\n".join(summary.lines()))
    return 0


def _tokens(data: TokenData, sentence: int, dictionary: Dictionary, path: Path) -> list[str]:
    ids = data[sentence][:-1].tolist()
    if max(ids, default=0) >= len(dictionary):
        raise InputError(
            path,
            None,
            f"has {len(dictionary)} symbols, but {data.idx_path.name} uses number {max(ids)}",
            "it belongs to other data; run treesyntax binarize again",
        )
    return [dictionary.symbols[token] for token in ids]


def _arrays(tree: StoredTree | None) -> dict[str, list[int]]:
    if tree is None:
        return {}
    return {
        "parents": tree.parents.tolist(),
        "branches": tree.branches.tolist(),
        "token_nodes": tree.token_nodes.tolist(),
        **({} if tree.labels is None else {"labels": tree.labels.tolist()}),
    }


def draw(tree: StoredTree, tokens: list[str]) -> list[str]:
    """The lines of a drawn tree, one a node."""
    labels: list[list[str]] = [[] for _ in tree.parents]
    for position, (token, node) in enumerate(zip(tokens, tree.token_nodes.tolist(), strict=True)):
        if node >= 0:
            labels[node].append(f"{position}:{token}")
    lines = [f"{'node':>5} {'parent':>6} {'slot':>4}"]
    depths: list[int] = []
    arrays = zip(tree.parents.tolist(), tree.branches.tolist(), labels, strict=True)
    for node, (parent, branch, label) in enumerate(arrays):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        # A chain of 10,000 nodes must not print 10,000² spaces.
        indent = INDENT * depths[node]
        if depths[node] > DEEPEST_INDENT:
            indent = INDENT * DEEPEST_INDENT + f"(depth {depths[node]}) "
        lines.append(f"{node:5} {parent:6} {branch:4}  {indent}{' '.join(label) or '·'}")
    return lines
