"""An architecture builds its own method, in its own size, and flags override presets."""

from __future__ import annotations

import pytest
import torch
from fairseq import options, utils
from fairseq.data import Dictionary
from fairseq.dataclass.initialize import add_defaults
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import build_model
from omegaconf import OmegaConf
from support import PLUGINS
from support.forked_programs import parse_options_once

from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.composition import parse_spec
from treesyntax.nn.injection import methods_of

parse_options_once()
utils.import_user_module(options.argparse.Namespace(user_dir=str(PLUGINS)))
from fairseq_plugins.archs import SIZES, Size, architecture_names  # noqa: E402  (registered above)

ARCHITECTURES = [
    (method, name, size)
    for method in methods_of("encoder")
    for name, size in zip(architecture_names(method), SIZES.values(), strict=True)
]


BUILT = ("stack_pe", "relative_position", "relative_depth", "rotary")
"""In all sizes but the smallest, and in that one; tests of ``treesyntax translate`` build all methods."""


class Task:
    """Dictionaries are all that a model asks of its task."""

    def __init__(self) -> None:
        self.source_dictionary = self.target_dictionary = Dictionary()
        for word in range(8):
            self.source_dictionary.add_symbol(f"w{word}")


def read(arch: str, *flags: str):
    command = ["data", "--task", "tree_translation", "--arch", arch, *flags]
    return options.parse_args_and_arch(options.get_training_parser(), command)


def build(arch: str, *flags: str):
    return build_model(convert_namespace_to_omegaconf(read(arch, *flags)).model, Task())


@pytest.mark.parametrize(("method", "arch", "size"), ARCHITECTURES)
def test_an_architecture_has_its_own_method_and_size(method, arch, size):
    args = read(arch)
    papers = METHODS[method].of_the_paper or (method, "none")
    assert (args.encoder_injection, args.decoder_injection) == papers
    assert method in {**parse_spec(papers[0]), **parse_spec(papers[1])}
    for side in ("encoder", "decoder"):
        names = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads")
        assert Size(*(getattr(args, f"{side}_{name}") for name in names)) == size


@pytest.mark.parametrize(("method", "arch", "size"), [
    (method, arch, size) for method, arch, size in ARCHITECTURES
    if (size is SIZES["tiny"]) == (method != "stack_pe") and method in BUILT
])  # fmt: skip
def test_an_architecture_builds_its_own_method_and_size(method, arch, size):
    with torch.device("meta"):  # shapes without numbers: the largest have 60 million
        model = build(arch)
    assert list(model.encoder.injections) == [method]
    has_more = method in ("relative_position", "relative_depth")
    assert list(model.decoder.injections) == ["relative_position"] * has_more
    for side in (model.encoder, model.decoder):
        assert len(side.layers) == side.settings.layers == size.layers
        assert side.layers[0].fc1.weight.shape == (size.d_ff, size.d_model)
        assert side.layers[0].self_attn.heads == size.heads


def tables(model) -> dict[str, tuple[int, ...]]:
    """Shapes of the tables on keys, by side and method."""
    return {
        f"{side} {name}": tuple(method.key_table.shape)
        for side in ("encoder", "decoder")
        for name, method in getattr(model, side).injections.items()
    }


def has_positions(model) -> tuple[bool, bool]:
    return tuple(side.embed_positions is not None for side in (model.encoder, model.decoder))


def test_the_models_of_shaw_and_of_omote():
    """Shaw et al. 2018, 4.1; Omote et al. 2019: vectors on both sides, l = k = 2."""
    model = build("tree_relative_position_tiny")
    # 2 layers, a table for each of 2 heads, 2 * 16 + 1 distances, 16 numbers.
    assert tables(model) == {
        f"{side} relative_position": (2, 2, 33, 16) for side in ("encoder", "decoder")
    }
    assert has_positions(model) == (False, False)
    omote = {"--decoder-injection": "relative_position_omote"}
    for encoder in ("relative_position", "relative_depth", "depth_and_position"):
        flags = {"--encoder-injection": f"{encoder}_omote", **omote}
        model = build("tree_sequence_tiny", *(word for pair in flags.items() for word in pair))
        assert tables(model)["decoder relative_position"] == (2, 5, 16)
        assert set(tables(model).values()) == {(2, 5, 16)}
        assert has_positions(model) == (True, True), "dep and dep+rel differ in one thing"
    assert tables(model) == {**tables(build("tree_relative_depth_tiny")),
                             "encoder relative_position": (2, 5, 16)}  # fmt: skip
    assert has_positions(build("tree_relative_depth_tiny")) == (True, True)


def test_what_checkpoints_of_earlier_versions_name_keeps_its_meaning():
    both = ("relative_position(clip=2)+relative_depth", "dependency_and_position")
    models = [build("tree_sequence_tiny", "--encoder-injection", spec) for spec in both]
    assert [has_positions(model) for model in models] == [(False, True)] * 2
    assert tables(models[0]) == tables(models[1])


def test_the_base_size_goes_by_its_name_too():
    assert vars(read("tree_stack_pe_base")) == {
        **vars(read("tree_stack_pe")), "arch": "tree_stack_pe_base"
    }  # fmt: skip


def test_a_method_for_decoders_alone_has_an_architecture_with_a_plain_encoder():
    args = read("tree_pushdown_mini")
    assert (args.encoder_injection, args.decoder_injection) == ("none", "pushdown")
    with pytest.raises(
        OptionError, match="pushdown is for a decoder alone; give it with --decoder-inj"
    ):
        build("tree_sequence_tiny", "--encoder-injection", "pushdown")


def test_flags_override_presets():
    model = build(
        "tree_stack_pe_tiny",
        "--encoder-injection", "relation_mask+stack_pe(depth=4, parameters=2)",
        "--encoder-layers", "3", "--decoder-embed-dim", "16",
        "--decoder-injection", "relative_position(clip=3)",
    )  # fmt: skip
    assert list(model.encoder.injections) == ["relation_mask", "stack_pe"]
    assert model.encoder.injections["stack_pe"].depth == 4
    assert list(model.decoder.injections) == ["relative_position"]
    assert len(model.encoder.layers) == 3
    assert len(model.decoder.layers) == SIZES["tiny"].layers
    assert model.decoder.layers[0].encoder_attn.k_proj.weight.shape == (16, 32)


@pytest.mark.parametrize(
    ("side", "method"), [("encoder", "stack_pe"), ("decoder", "relative_position")]
)
@pytest.mark.parametrize(("wanted", "has"), [("auto", 0), ("absolute", 1), ("none", 0)])
def test_a_method_may_take_the_place_of_positions_on_its_side(side, method, wanted, has):
    flags = (f"--{side}-injection", method, f"--{side}-positions", wanted)
    model = build("tree_sequence_tiny", *flags)
    for one in ("encoder", "decoder"):
        positions = getattr(model, one).embed_positions
        assert (positions is not None) == (has if one == side else 1)


def test_embeddings_are_shared_when_asked():
    model = build("tree_sequence_tiny", "--share-all-embeddings")
    weight = model.encoder.embed_tokens.weight
    assert model.decoder.embed_tokens.weight is weight
    assert model.decoder.output_projection.weight is weight
    assert build("tree_sequence_tiny").decoder.embed_tokens.weight is not weight


@pytest.mark.parametrize(
    ("scaling", "std"), [("up", 32**-0.5), ("none", 1.0), ("down", (2 / 32) ** 0.5)]
)
def test_embeddings_start_at_the_scale_that_a_flag_says(scaling, std):
    torch.manual_seed(0)
    model = build("tree_sequence_tiny", "--embedding-scaling", scaling)
    for side in (model.encoder, model.decoder):
        assert side.settings.embedding_scaling == scaling
        weight = side.embed_tokens.weight[2:]
        assert abs(weight.std().item() / std - 1) < 0.15
        assert side.embed_tokens.weight[1].eq(0).all()


def test_layers_share_parameters_when_asked():
    model = build("tree_relation_mask_tiny", "--share-encoder-layers", "1")
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (1, 2)
    assert model.encoder.settings.layers == 2
    assert len(model.encoder.injections["relation_mask"].strengths) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--share-decoder-layers", "3"], "3 shared layers cannot be repeated to 2"),
        (["--encoder-injection", "stak_pe"], "unknown method 'stak_pe'"),
        (["--decoder-injection", "stak_pe"], "unknown method 'stak_pe'"),
        (["--decoder-injection", "stack_pe"], "stack_pe needs a target whose tokens grow a tree"),
        (["--encoder-attention-heads", "5"], "5 heads do not divide a width of 32"),
        (["--share-all-embeddings", "--decoder-embed-dim", "16"], "needs one dictionary"),
    ],
)
def test_flags_that_do_not_fit_are_refused(flags, message):
    with pytest.raises(OptionError, match=message):
        build("tree_sequence_tiny", *flags)


def test_an_architecture_in_a_configuration_of_hydra_has_its_method_and_sizes():
    """fairseq-hydra-train would fill in the base's sizes and no method."""
    given = {"_name": "tree_relation_mask_tiny", "encoder_layers": 3}
    cfg = OmegaConf.create({"model": given})
    OmegaConf.set_struct(cfg, True)
    add_defaults(cfg)
    size = SIZES["tiny"]
    assert cfg.model.encoder_injection == "relation_mask"
    assert (cfg.model.encoder_embed_dim, cfg.model.decoder_layers) == (size.d_model, size.layers)
    assert cfg.model.encoder_layers == 3
    assert cfg.model.dropout == 0.1
    plain = OmegaConf.create({"model": {"_name": "tree_transformer"}})
    add_defaults(plain)
    assert (plain.model.encoder_injection, plain.model.encoder_embed_dim) == ("none", 512)
