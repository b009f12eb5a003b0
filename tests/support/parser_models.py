"""Tiny real models of every parser, made on the spot: a few steps of training or random weights."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple

DETERMINERS = ("the", "a", "every", "this")
NOUNS = ("cat", "dog", "tree", "house", "parser", "naïve", "children")
VERBS = ("sees", "likes", "parses", "isn't", "finds")
ADVERBS = ("today", "quickly", "often")


class Gold(NamedTuple):
    """A sentence with everything that some parser learns from."""

    words: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]
    brackets: str


def treebank(size: int, seed: int = 1) -> list[Gold]:
    """Sentences like ``The cat sees a dog today .``"""
    draw = random.Random(seed)
    sentences = []
    for _ in range(size):
        subject, thing = draw.choice(NOUNS), draw.choice(NOUNS)
        rows = [
            (draw.choice(DETERMINERS).title(), "DET", 2, "det"),
            (subject, "NOUN", 3, "nsubj"),
            (draw.choice(VERBS), "VERB", 0, "root"),
            (draw.choice(DETERMINERS), "DET", 5, "det"),
            (thing, "NOUN", 3, "obj"),
        ]
        if draw.random() < 0.5:
            rows.append((draw.choice(ADVERBS), "ADV", 3, "advmod"))
        rows.append((draw.choice(".!?"), "PUNCT", 3, "punct"))
        words, tags, heads, relations = map(list, zip(*rows, strict=True))
        pairs = [f"({tag} {word})" for tag, word in zip(tags, words, strict=True)]
        last = f" (ADVP {pairs[5]})" if len(rows) == 7 else ""
        verb = f"(VP {pairs[2]} (NP {pairs[3]} {pairs[4]}){last})"
        brackets = f"(ROOT (S (NP {pairs[0]} {pairs[1]}) {verb} {pairs[-1]}))"
        sentences.append(Gold(words, tags, heads, relations, brackets))
    return sentences


def text_of(gold: Gold) -> str:
    """The sentence as raw text."""
    return " ".join(gold.words[:-1]) + gold.words[-1]


def conllu(sentences: list[Gold]) -> str:
    records = []
    for gold in sentences:
        rows = zip(gold.words, gold.tags, gold.heads, gold.relations, strict=True)
        lines = [
            f"{i}\t{word}\t{word.lower()}\t{tag}\t{tag}\t_\t{head}\t{relation}\t_\t_"
            for i, (word, tag, head, relation) in enumerate(rows, start=1)
        ]
        records.append("\n".join(lines) + "\n\n")
    return "".join(records)


def make_stanza(folder: Path) -> Path:
    """A folder of stanza models, each trained for a few steps; vectors are random."""
    work = folder / "work"
    work.mkdir(parents=True)
    gold = treebank(40)
    (work / "gold.conllu").write_text(conllu(gold))
    (work / "gold.ptb").write_text("\n".join(sentence.brackets for sentence in gold))
    _write_tokenizer_data(work, gold)
    _write_vectors(folder / "pretrain.pt", gold)
    for train in (_train_tokenizer, _train_words, _make_constituency):
        train(folder, work)
    return folder


def _common(folder: Path, name: str) -> list[str]:
    save = ["--save_dir", str(folder), "--save_name", f"{name}.pt"]
    return [*save, "--lang", "en", "--shorthand", "en_tiny"]


def _train_tokenizer(folder: Path, work: Path) -> None:
    from stanza.models import tokenizer

    tokenizer.main([
        *_common(folder, "tokenize"), "--cpu", "--mwt_json_file", f"{work}/mwt.json",
        "--txt_file", f"{work}/gold.txt", "--label_file", f"{work}/gold.labels",
        "--dev_txt_file", f"{work}/gold.txt", "--dev_label_file", f"{work}/gold.labels",
        "--steps", "40", "--lr0", "0.02", "--hidden_dim", "16", "--emb_dim", "8",
        "--batch_size", "8", "--dropout", "0", "--unit_dropout", "0.1", "--feat_unit_dropout", "0",
    ])  # fmt: skip


def _train_words(folder: Path, work: Path) -> None:
    from stanza.models import lemmatizer, parser, tagger

    data = ["--train_file", f"{work}/gold.conllu", "--eval_file", f"{work}/gold.conllu"]
    small = [
        "--hidden_dim", "16", "--deep_biaff_hidden_dim", "16", "--char_hidden_dim", "16",
        "--char_emb_dim", "8", "--word_emb_dim", "8", "--tag_emb_dim", "8", "--num_layers", "1",
        "--transformed_dim", "8", "--no_pretrain", "--cpu", "--max_steps", "30",
        "--eval_interval", "30", "--dropout", "0.1", "--word_dropout", "0.1",
    ]  # fmt: skip
    lemma = ["--shorthand", "en_tiny", "--dict_only", "--cpu"]
    tagger.main([*_common(folder, "pos"), *data, *small, "--batch_size", "40", "--lr", "0.02"])
    lemmatizer.main([*_common(folder, "lemma")[:4], *data, *lemma])
    parser.main([*_common(folder, "depparse"), *data, *small, "--batch_size", "150"])


def _make_constituency(folder: Path, work: Path) -> None:
    """Random weights: the library's own training loop wants CoreNLP to score every epoch."""
    from stanza.models import constituency_parser
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.constituency import parser_training, tree_reader

    args = constituency_parser.parse_args([
        *_common(folder, "constituency"), "--cpu",
        "--wordvec_pretrain_file", f"{folder}/pretrain.pt",
        "--hidden_size", "16", "--delta_embedding_dim", "8", "--tag_embedding_dim", "8",
        "--transition_embedding_dim", "8", "--transition_hidden_size", "8",
        "--reduce_heads", "2", "--num_lstm_layers", "1",
    ])  # fmt: skip
    trees = tree_reader.read_treebank(f"{work}/gold.ptb")
    trainer, *_ = parser_training.build_trainer(args, trees, trees, [], FoundationCache(), None)
    trainer.save(f"{folder}/constituency.pt", save_optimizer=False)


def _write_vectors(path: Path, gold: list[Gold]) -> None:
    import torch
    from stanza.models.common.pretrain import Pretrain, PretrainedWordVocab

    words = sorted({word.lower() for sentence in gold for word in sentence.words})
    vocab = PretrainedWordVocab(words, lang="en")
    vectors = Pretrain(str(path))
    vectors._vocab = vocab
    torch.manual_seed(1)
    vectors._emb = torch.randn(len(vocab), 16)
    vectors.save(str(path))


def _write_tokenizer_data(work: Path, gold: list[Gold]) -> None:
    text, labels = [], []
    for sentence in gold:
        raw = text_of(sentence)
        marks = ["0"] * len(raw)
        end = 0
        for word in sentence.words:
            end = raw.index(word, end) + len(word)
            marks[end - 1] = "1"
        marks[-1] = "2"
        text.append(raw)
        labels.append("".join(marks))
    (work / "gold.txt").write_text("\n".join(text) + "\n")
    (work / "gold.labels").write_text("0".join(labels) + "\n\n")
    (work / "mwt.json").write_text(json.dumps([]))


CHARACTERS = "".join(map(chr, range(256)))
LABELS = ("", "S", "NP", "VP", "S::VP", "ADVP")
TAGS = ("UNK", "DET", "NOUN", "VERB", "ADV", "PUNCT", "-LRB-")
HPARAMS = {
    "use_pretrained": False, "use_chars_lstm": False, "use_encoder": True, "predict_tags": True,
    "d_model": 16, "num_layers": 1, "num_heads": 2, "d_kv": 8, "d_ff": 16, "d_label_hidden": 8,
    "d_tag_hidden": 8, "d_char_emb": 8, "encoder_max_len": 512, "force_root_constituent": True,
    "morpho_emb_dropout": 0.0, "relu_dropout": 0.0, "residual_dropout": 0.0, "tag_loss_scale": 1.0,
    "attention_dropout": 0.0, "char_lstm_input_dropout": 0.0, "pretrained_model": "none",
}  # fmt: skip


def _benepar_config(**changes: bool) -> dict[str, object]:
    return {
        "tag_vocab": {tag: i for i, tag in enumerate(TAGS)},
        "label_vocab": {label: i for i, label in enumerate(LABELS)},
        "char_vocab": {character: i for i, character in enumerate(CHARACTERS)},
        "hparams": {**HPARAMS, **changes},
    }


def _random_weights(config: dict[str, object], folder: Path | None) -> dict[str, object]:
    import torch
    from benepar.nkutil import HParams

    from treesyntax.parsers.benepar_remedies import TolerantChartParser, special_tokens_method

    torch.manual_seed(1)
    # benepar has no types, and gives paths and settings others in each of its functions.
    hparams = HParams(**config["hparams"])  # type: ignore[arg-type]
    path = str(folder) if folder else None
    with special_tokens_method():
        parser = TolerantChartParser(
            **{**config, "hparams": hparams},
            pretrained_model_path=path,  # type: ignore[arg-type]
        )
    return dict(parser.state_dict())


def make_benepar_characters(path: Path) -> Path:
    """A character-LSTM model of benepar in a single file, with random weights."""
    import torch

    config = _benepar_config(use_chars_lstm=True)
    torch.save({"config": config, "state_dict": _random_weights(config, None)}, path)
    return path


def make_benepar_bert(folder: Path) -> Path:
    """A BERT-type model of benepar in a folder, with an entry that BERT no longer has."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, PreTrainedTokenizerFast

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "see", "##s", "##ing"]
    pieces += [chr(c) for c in range(33, 127)] + [f"##{chr(c)}" for c in range(97, 123)]
    words = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=512, unk_token="[UNK]", pad_token="[PAD]",
        cls_token="[CLS]", sep_token="[SEP]",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    config = _benepar_config(use_pretrained=True)
    BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, benepar=config,
    ).save_pretrained(folder)  # fmt: skip
    weights = _random_weights(config, folder)
    weights["pretrained_model.embeddings.position_ids"] = torch.arange(512)[None]
    torch.save(weights, folder / "benepar_model.bin")
    return folder


def make_spacy(folder: Path) -> Path:
    """A spaCy pipeline: a tok2vec that the parser listens to, and a tagger that it does not."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example

    vectors = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2", "width": 16, "attrs": ["NORM"],
            "rows": [100], "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 16, "window_size": 1,
            "maxout_pieces": 2, "depth": 1,
        },
    }  # fmt: skip
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}
    model = {
        "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "parser",
        "extra_state_tokens": False, "hidden_width": 16, "maxout_pieces": 2, "use_upper": True,
        "tok2vec": listener,
    }  # fmt: skip
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": vectors})
    nlp.add_pipe("tagger")
    nlp.add_pipe("parser", config={"model": model})
    examples = []
    for gold in treebank(40):
        heads = [head - 1 if head else i for i, head in enumerate(gold.heads)]
        doc = Doc(nlp.vocab, gold.words)
        marks = {"heads": heads, "deps": gold.relations, "tags": gold.tags}
        examples.append(Example.from_dict(doc, marks))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(15):
        nlp.update(examples, sgd=optimizer)
    nlp.to_disk(folder)
    return folder


def make_all(folder: Path) -> None:
    """One model of every kind."""
    from treesyntax.parsers.torchaudio_remedy import broken_torchaudio_hidden

    with broken_torchaudio_hidden():
        make_spacy(folder / "spacy")
        make_stanza(folder / "stanza")
        make_benepar_characters(folder / "characters.pt")
        make_benepar_bert(folder / "bert")
