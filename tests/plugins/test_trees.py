"""Trees on the target through fairseq: training, resuming, generating, and what is refused."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import options, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate as generate_command
from omegaconf import OmegaConf
from plugins.test_plugin import PLUGINS, train
from support import binarize

from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.methods import METHODS
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.nn.injection import Injection
from treesyntax.trees.linearizations import from_linearization

utils.import_user_module(options.argparse.Namespace(user_dir=str(PLUGINS)))
from fairseq_plugins.generator import ConstrainedGenerator  # noqa: E402  (registered above)
from fairseq_plugins.model import TreeTransformer, TreeTransformerConfig  # noqa: E402
from fairseq_plugins.target import find_target_linearization  # noqa: E402
from fairseq_plugins.task import TreeTranslationConfig, TreeTranslationTask  # noqa: E402

SPEC = "stack_pe+relation_mask+relative_depth"


def formula(generator, levels):
    """The words of a formula, and its tree."""
    if not levels or generator.random() < 0.3:
        atom = generator.choice("pqr")
        return atom, atom
    count = generator.choice([1, 2, 2, 3])
    parts = [formula(generator, levels - 1) for _ in range(count)]
    name = {1: "not", 2: "and", 3: "any"}[count]
    said = " , ".join(words for words, _ in parts)
    return f"{name} of {said}", f"({name} {' '.join(tree for _, tree in parts)})"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions to formulas in two linearizations, formulas to formulas, and text to text."""
    folder, generator = tmp_path_factory.mktemp("data"), random.Random(1)
    pairs = [formula(generator, 3) for _ in range(40)]
    for column, name in enumerate(("say", "mean")):
        (folder / f"text.{name}").write_text("".join(f"{pair[column]}\n" for pair in pairs))
    trees = folder / "text.mean"
    for name, source, flags in (
        ("nary_dfs", folder / "text.say", ["--target-linearization", "nary_dfs"]),
        ("nary_bfs", folder / "text.say", ["--target-linearization", "nary_bfs"]),
        ("lcrs_bfs", trees, ["--source-format", "sexpr", "--target-linearization", "lcrs_bfs"]),
        ("plain", folder / "text.say", ["--target-linearization", "bracketed"]),
    ):
        languages = ("--source-lang", "say", "--target-format", "sexpr")
        binarize(folder / name, source, trees, *languages, *flags)
    return folder


def generate(capsys, data: Path, model: Path, *flags: str) -> list[str]:
    """fairseq-generate in this process: the hypotheses in order."""
    command = [
        str(data), "--user-dir", str(PLUGINS), "--task", "tree_translation", "--path", str(model),
        "--beam", "3", "--batch-size", "40", "--num-workers", "0", "--max-len-b", "12", "--gen-subset", "test", *flags,
    ]  # fmt: skip
    args = options.parse_args_and_arch(options.get_generation_parser(), command)
    generate_command.main(convert_namespace_to_omegaconf(args))
    found = dict(re.findall(r"^H-(\d+)\t\S+\t(.*)$", capsys.readouterr().out, re.M))
    assert len(found) == 40
    return [found[str(row)] for row in range(40)]


@pytest.fixture(scope="module")
def seq2tree(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    save = tmp_path_factory.mktemp("seq2tree")
    flags = ("--decoder-injection", SPEC, "--disable-validation")
    done = train(data / "nary_dfs", save, *flags, arch="tree_sequence_tiny")
    assert done.returncode == 0, done.stderr
    return save / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def tree2tree(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    save = tmp_path_factory.mktemp("tree2tree")
    done = train(
        data / "lcrs_bfs", save, "--encoder-injection", "stack_pe", "--decoder-injection", SPEC,
        "--decoder-next-slot", "--no-target-eos-loss", "--eval-bleu", "--eval-bleu-args",
        '{"max_len_b": 12}', arch="tree_sequence_tiny",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"valid.* bleu [\d.]+", done.stdout + done.stderr), "validation may generate"
    return save / "checkpoint_last.pt"


def test_generation_gives_whole_trees_and_without_constraints_anything(capsys, data, seq2tree):
    hypotheses = generate(capsys, data / "nary_dfs", seq2tree)
    assert all(from_linearization(line, "nary_dfs", "sexpr") for line in hypotheses)
    free = generate(capsys, data / "nary_dfs", seq2tree, "--tree-constraints", "none")
    malformed = 0
    for line in free:
        try:
            malformed += not from_linearization(line, "nary_dfs", "sexpr")
        except TreeError:
            malformed += 1
    assert malformed, "four updates cannot have taught it trees"


def test_tree_to_tree_with_a_grammar_and_no_predicted_end(capsys, data, tree2tree):
    hypotheses = generate(capsys, data / "lcrs_bfs", tree2tree, "--tree-constraints", "grammar")
    found = [from_linearization(line, "lcrs_bfs", "sexpr") for line in hypotheses]
    # The grammar knows that negation has one part, and so on; labels alone do not say so.
    for text in found:
        for name, parts in (("not", 1), ("and", 2), ("any", 3)):
            for match in re.finditer(rf"\( {name} ", text):
                assert parts_after(text[match.end() :]) == parts
    task = task_of(data / "lcrs_bfs", tree_constraints="none")
    task.load_state_dict(load_checkpoint(tree2tree)["task_state"])
    with pytest.raises(OptionError, match="does not know where to end; leave out"):
        task.build_generator([], SimpleNamespace())


def parts_after(text):
    """Parts of an s-expression up to its closing bracket."""
    depth = parts = 0
    for token in text.split():
        parts += depth == 0 and token != ")"
        depth += (token == "(") - (token == ")")
        if depth < 0:
            break
    return parts


def test_a_checkpoint_is_held_to_the_linearization_that_it_was_trained_on(data, seq2tree, tmp_path):
    """Both orders have the same dictionary, so nothing else would notice."""
    state = load_checkpoint(seq2tree)["task_state"]
    with pytest.raises(
        OptionError, match="trained on targets in the linearization nary_dfs, but .* nary_bf"
    ):
        task_of(data / "nary_bfs").load_state_dict(state)
    bare = task_of(without_record(data / "nary_dfs", tmp_path / "bare"))
    bare.load_state_dict(state)
    assert bare.target_linearization == "nary_dfs"


def without_record(folder: Path, copy: Path) -> Path:
    shutil.copytree(folder, copy)
    (copy / "binarize.json").unlink()
    return copy


def task_of(folder: Path | str, **flags: object) -> TreeTranslationTask:
    general = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    return TreeTranslationTask.setup_task(
        TreeTranslationConfig(data=str(folder), **{**general, **flags})
    )


def model_of(task: TreeTranslationTask, **flags: object) -> TreeTransformer:
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("embed_dim", 16), ("layers", 2), ("attention_heads", 2))
    }
    return TreeTransformer.build_model(TreeTransformerConfig(**sizes, **flags), task)


def test_the_linearization_comes_from_the_record_or_the_flag(data, tmp_path):
    assert task_of(data / "lcrs_bfs").target_linearization == "lcrs_bfs"
    assert task_of(data / "plain").target_linearization == "bracketed"
    bare = without_record(data / "nary_dfs", tmp_path / "bare")
    assert task_of(bare).target_linearization == ""
    model = model_of(task_of(bare, target_view="nary_dfs"), decoder_injection="stack_pe")
    assert (model.decoder.trees.order, model.decoder.trees.binary) == ("dfs", False)
    assert model_of(task_of(data / "nary_dfs")).decoder.trees is None


@pytest.mark.parametrize(
    ("folder", "on_task", "spec", "message"),
    [
        ("plain", {}, "stack_pe", "stack_pe needs a target.*--target-linearization"),
        ("nary_dfs", {}, "stack_pe(tree='right')", "would see the future"),
        ("nary_dfs", {"left_pad_target": True}, "stack_pe", "leave out --left-pad-target"),
        ("nary_dfs", {"target_view": "lcrs_dfs"}, "none", "lcrs_dfs, but .* with nary_dfs"),
        ("plain", {"no_target_eos_loss": True}, "none", "tokens say where it ends; binarize"),
        ("plain", {"num_batch_buckets": 2}, "none", "--num-batch-buckets pads tokens without"),
    ],
)
def test_data_that_does_not_fit_is_refused(data, folder, on_task, spec, message):
    with pytest.raises(OptionError, match=message):
        model_of(task_of(data / folder, **on_task), decoder_injection=spec)


class CountsChildren(Injection):
    """A user's, who did not think of decoders."""

    def node_encoding(self, tree):
        is_child = tree.parent.unsqueeze(2) == torch.arange(tree.parent.shape[1])
        return tree.at_tokens(is_child.sum(1), 0).unsqueeze(2).expand(-1, -1, self.site.d_model)


def test_a_decoder_that_would_see_the_future_is_not_trained(data, monkeypatch):
    monkeypatch.setitem(METHODS, "counts_children", CountsChildren)
    task = task_of(data / "nary_dfs")
    sizes = {"decoder_injection": "counts_children", "decoder_layers": 1, "encoder_layers": 1}
    task.build_model(OmegaConf.structured(TreeTransformerConfig(_name="tree_transformer", **sizes)))
    task.load_dataset("valid")
    with pytest.raises(OptionError, match="counts_children sees the future"):
        task.load_dataset("train")


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_training_without_layers_is_refused(data, side):
    """Its trees would act on nothing; what was trained so still loads."""
    task = task_of(data / "plain")
    layers = {"encoder_layers": 1, "decoder_layers": 1, f"{side}_layers": 0}
    cfg = OmegaConf.structured(TreeTransformerConfig(_name="tree_transformer", **layers))
    with pytest.raises(OptionError, match=f"--{side}-layers 0: at least 1 is needed"):
        task.build_model(cfg)
    task.build_model(cfg, from_checkpoint=True)


def test_folders_must_agree_and_records_be_whole(data, tmp_path):
    folders = [str(data / "nary_dfs"), str(data / "nary_bfs")]
    with pytest.raises(
        OptionError, match="is in the linearization nary_bfs, that of .* binarize them alike"
    ):
        task_of(":".join(folders))
    (tmp_path / "binarize.json").write_text('{"sides": 3}')
    with pytest.raises(InputError, match="not a record of treesyntax binarize"):
        find_target_linearization([str(tmp_path)], "mean", "auto")
    sides = {"sides": {"source": {"language": "mean", "view": "words"}}}
    (tmp_path / "binarize.json").write_text(json.dumps(sides))
    assert find_target_linearization([str(tmp_path)], "mean", "auto") == "words"
    assert find_target_linearization([str(tmp_path)], "other", "auto") == ""


@pytest.mark.parametrize(
    ("folder", "on_task", "generation", "message"),
    [
        ("plain", {"tree_constraints": "tree"}, {}, "--tree-constraints tree needs a target"),
        ("nary_dfs", {}, {"print_alignment": "hard"}, "--print-alignment needs attention weights"),
        ("nary_dfs", {}, {"sampling": True}, "or add --tree-constraints none"),
        ("nary_dfs", {}, {"beam": 0}, "--beam 0: at least 1 is needed"),
        ("plain", {}, {"nbest": 0}, "--nbest 0: at least 1 is needed"),
        ("plain", {}, {"beam": 2, "nbest": 3}, "--nbest 3 asks for more hypotheses than --beam 2"),
        ("plain", {}, {"beam": 2, "diverse_beam_groups": 3}, "--diverse-beam-groups 3: divides no --beam 2"),
        ("plain", {}, {"print_step": True}, "--print-step is for models that refine an output"),
        ("plain", {}, {"retain_iter_history": True}, "--retain-iter-history is for models that"),
        ("plain", {}, {"max_len_a": 1e308}, r"--max-len-a 1e\+308: must be a number from 0 to 1,0"),
        ("nary_dfs", {}, {"unkpen": -1.0}, "do not go with --unkpen -1, which could raise scores; give"),
        ("nary_dfs", {"tree_constraints": "none"}, {"unkpen": 1.0}, r"unknown nodes \(<unk>/2\) as"),
        ("nary_dfs", {"tree_constraints": "grammar", "train_subset": "gone"}, {},
         "grammar learns from .*gone.say-mean.mean, which is not there"),
    ],
)  # fmt: skip
def test_generation_that_does_not_fit_is_refused(data, folder, on_task, generation, message):
    task = task_of(data / folder, **on_task)
    with pytest.raises(OptionError, match=message):
        task.build_generator([model_of(task)], SimpleNamespace(**generation))


def test_which_generator_is_built(data):
    for folder, kind, constrained in (
        ("nary_dfs", "auto", True),
        ("nary_dfs", "none", False),
        ("plain", "auto", False),
    ):
        task = task_of(data / folder, tree_constraints=kind)
        generator = task.build_generator([model_of(task)], SimpleNamespace())
        assert (type(generator) is ConstrainedGenerator) is constrained
    scorer = task.build_generator([], SimpleNamespace(score_reference=True))
    assert type(scorer).__name__ == "SequenceScorer"


@pytest.mark.parametrize("ends", [(True, False), (False, True)])
def test_an_ensemble_ends_by_itself_only_if_each_of_its_models_does(data, ends):
    """In whichever order its checkpoints come."""
    task = task_of(data / "nary_dfs", tree_constraints="none")
    for predicts_end in ends:
        task.load_state_dict({"predicts_end": predicts_end})
    with pytest.raises(OptionError, match="does not know where to end"):
        task.build_generator([model_of(task)], SimpleNamespace())


def test_search_learns_the_grammar_of_a_language_that_is_not_written_down(tmp_path):
    programs = ["x = 1 ;", "x = y ;", "if ( x ) { y = 2 ; }", "x = 3 + y ;"]
    for name in ("say", "js"):
        (tmp_path / f"text.{name}").write_text("".join(f"{program}\n" for program in programs))
    folder, files = tmp_path / "data", [tmp_path / f"text.{name}" for name in ("say", "js")]
    flags = ("--target-format", "javascript", "--target-linearization", "nary_dfs")
    binarize(folder, *files, "--source-lang", "say", "--target-lang", "js", *flags)

    def legal(kind: str) -> torch.Tensor:
        built = task_of(folder, target_lang="js", tree_constraints=kind)._constraints()
        return built.costs

    assert torch.equal(legal("auto"), legal("grammar"))
    assert legal("tree").shape != legal("auto").shape
    for file in folder.glob("train.*"):
        file.unlink()
    assert torch.equal(legal("auto"), legal("tree")), "without the training data"


def test_the_end_is_left_out_of_the_loss_when_asked(data):
    batches = []
    for left_out in (False, True):
        task = task_of(data / "nary_dfs", no_target_eos_loss=left_out)
        task.load_dataset("train")
        dataset = task.datasets["train"]
        batches.append(dataset.collater([dataset[index] for index in range(6)]))
    with_end, without = batches
    pad, eos = task.target_dictionary.pad(), task.target_dictionary.eos()
    expected = torch.where(with_end["target"] == eos, pad, with_end["target"])
    assert torch.equal(without["target"], expected)
    assert without["ntokens"] == with_end["ntokens"] - 6 == int(expected.ne(pad).sum())
    assert torch.equal(*(batch["net_input"]["prev_output_tokens"] for batch in batches))


@pytest.mark.parametrize("side", ["source", "target"])
def test_tokens_that_were_damaged_are_refused(data, tmp_path, side):
    folder = shutil.copytree(data / "nary_dfs", tmp_path / "data")
    task = task_of(folder)
    language = getattr(task.cfg, f"{side}_lang")
    path = folder / f"train.{task.cfg.source_lang}-{task.cfg.target_lang}.{language}.bin"
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"\.{language}\.bin: is not the file that"):
        task.load_dataset("train")


BRACKETS = [
    "(S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (DT a) (NN dog))))",
    "(S (NP (DT a) (JJ red) (NN cat)) (VP (VBD slept)))",
] * 4


@pytest.mark.parametrize(
    ("view", "injection", "refused"),
    [
        ("words", "relation_mask", True),
        ("words", "relative_position+relation_mask", True),
        ("words", "relation_mask+tree_distance", True),
        ("words", "stack_pe", False),
        ("words", "tree_distance+relative_depth", False),
        ("preorder", "relation_mask", False),
    ],
)
def test_a_method_that_sees_nothing_of_the_trees_is_refused(
    tmp_path: Path, view: str, injection: str, refused: bool
):
    """Words are leaves of these constituents: none is parent, child or sibling of another."""
    for name, lines in (("en", BRACKETS), ("sv", ["en katt"] * 8)):
        (tmp_path / f"text.{name}").write_text("".join(f"{line}\n" for line in lines))
    texts = [tmp_path / "text.en", tmp_path / "text.sv"]
    binarize(tmp_path / "bin", *texts, "--source-format", "ptb", "--source-view", view)
    done = train(
        tmp_path / "bin", tmp_path / "save", "--max-update", "1", "--encoder-injection", injection,
        arch="tree_sequence_tiny",
    )  # fmt: skip
    said = "relation_mask would learn nothing from these trees: over 8 sentences"
    assert (said in done.stderr) == refused, done.stderr
    assert (done.returncode == 0) == (not refused)
