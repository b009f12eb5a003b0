"""treesyntax's encoder and decoder behind fairseq's model interface."""

# No postponed annotations here: fairseq makes flags from the types of dataclass fields.
from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import (
    ARCH_MODEL_REGISTRY,
    MODEL_REGISTRY,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_plugins.target import find_copies
from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.bracket_growth import GROWING, GrowingBrackets, growing_trees
from treesyntax.model.composition import parse_spec
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import ACTIVATIONS, POSITIONS, SCALINGS, TransformerConfig
from treesyntax.nn.dropout import Dropout
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.tree_batch import TreeBatch

MODEL = "tree_transformer"
KV_CACHE = "treesyntax"
"""Our key in fairseq's incremental state."""

EncoderOut = dict[str, list[Tensor]]


def flag(default: Any, text: str) -> Any:
    """A dataclass field that becomes a command-line flag."""
    return field(default=default, metadata={"help": text})


@dataclass
class TreeTransformerConfig(FairseqDataclass):
    """Flat on purpose: an architecture's presets stay in force until a flag overrides them."""

    # fairseq's ChoiceEnum makes a type when it is called, which mypy cannot follow.

    encoder_injection: str = flag("none", "methods, such as 'stack_pe(depth=16)+relation_mask'")
    encoder_positions: ChoiceEnum(POSITIONS) = flag(  # type: ignore[valid-type]
        "auto", "absolute positions of the source: auto leaves them out where a method says so"
    )
    decoder_injection: str = flag(
        "none", "methods over the tree that the target has grown so far, as --encoder-injection"
    )
    decoder_positions: ChoiceEnum(POSITIONS) = flag(  # type: ignore[valid-type]
        "auto", "absolute positions of the target: auto leaves them out where a method says so"
    )
    decoder_next_slot: bool = flag(
        False, "add the encoding of the slot to be filled next to that of the last target token"
    )
    copy_source: bool = flag(
        False,
        "let the decoder also copy tokens of the source, as leaves where target tokens grow "
        "trees: p = g softmax + (1 - g) attention (pointer-generator)",
    )
    encoder_embed_dim: int = flag(512, "encoder width")
    encoder_ffn_embed_dim: int = flag(2048, "encoder feed-forward width")
    encoder_layers: int = flag(6, "encoder layers")
    encoder_attention_heads: int = flag(8, "encoder attention heads")
    encoder_normalize_before: bool = flag(False, "layer norm before each encoder block")
    encoder_learned_pos: bool = flag(False, "learned positions in the encoder")
    decoder_embed_dim: int = flag(512, "decoder width")
    decoder_ffn_embed_dim: int = flag(2048, "decoder feed-forward width")
    decoder_layers: int = flag(6, "decoder layers")
    decoder_attention_heads: int = flag(8, "decoder attention heads")
    decoder_normalize_before: bool = flag(False, "layer norm before each decoder block")
    decoder_learned_pos: bool = flag(False, "learned positions in the decoder")
    share_decoder_input_output_embed: bool = flag(False, "share decoder in- and output embedding")
    share_all_embeddings: bool = flag(False, "share all embeddings (needs a joined dictionary)")
    embedding_scaling: ChoiceEnum(SCALINGS) = flag(  # type: ignore[valid-type]
        "up",
        "how token embeddings and positions are brought to one scale: up multiplies embeddings that "
        "start at N(0, 1/width) by sqrt(width), as fairseq does; none multiplies nothing and "
        "starts embeddings at N(0, 1); down divides positions and encodings of nodes by sqrt(width) "
        "and starts embeddings at N(0, 2/width) (Csordas et al. 2021). It decides on "
        "compositional splits: compare with it set alike in all rows",
    )
    share_encoder_layers: int = flag(
        0,
        "this many encoder layers have parameters of their own and are applied in turn, "
        "--encoder-layers in all (1: universal Transformer without halting); 0: each has its own. "
        "A method's tables are shared with the layers",
    )
    share_decoder_layers: int = flag(0, "the same for the decoder")
    no_scale_embedding: bool = flag(False, "do not scale embeddings by sqrt(width)")
    activation_fn: ChoiceEnum(list(ACTIVATIONS)) = flag("relu", "activation function")  # type: ignore[valid-type]
    dropout: float = flag(0.1, "dropout")
    attention_dropout: float = flag(0.0, "dropout on attention weights")
    activation_dropout: float = flag(0.0, "dropout after the activation function")
    encoder_layerdrop: float = flag(0.0, "probability of leaving an encoder layer out in training")
    decoder_layerdrop: float = flag(0.0, "the same for a decoder layer")
    checkpoint_activations: bool = flag(
        False, "compute what is inside layers again in the backward pass, to save memory"
    )
    max_source_positions: int = flag(1024, "longest source")
    max_target_positions: int = flag(1024, "longest target")


class TreeEncoder(Encoder, FairseqEncoder):
    """Encoder over ``src_tokens`` and ``source_tree``, a :class:`TreeBatch` as a dict."""

    def __init__(
        self, settings: TransformerConfig, embed_tokens: nn.Embedding, dictionary: Any
    ) -> None:
        Encoder.__init__(self, settings, embed_tokens)
        self.dictionary = dictionary
        self.tree_loss: Tensor | None = None  # of the last batch, for the task

    def forward(  # type: ignore[override]  # fairseq's interface
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        source_tree: dict[str, Tensor] | None = None,
        **unused: Any,
    ) -> EncoderOut:
        """Encode; time first, as fairseq wants it."""
        output = self.encode(src_tokens, TreeBatch.from_dict(source_tree) if source_tree else None)
        self.tree_loss = output.loss
        return {
            "encoder_out": [output.memory.transpose(0, 1)],
            "encoder_padding_mask": []
            if output.attention_mask is None
            else [~output.attention_mask],
            "encoder_embedding": [],
            "encoder_states": [],
            "src_tokens": [src_tokens],
            "src_lengths": [],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Pick rows of the batch."""
        dims = {"encoder_out": 1, "encoder_padding_mask": 0, "src_tokens": 0}
        picked = {
            key: [value.index_select(dim, new_order) for value in encoder_out[key]]
            for key, dim in dims.items()
        }
        return {**encoder_out, **picked}

    def max_positions(self) -> int:
        """Longest source."""
        return self.settings.max_positions


class TreeDecoder(Decoder, FairseqIncrementalDecoder):
    """Decoder over ``prev_output_tokens``; its kv cache lives in fairseq's incremental state.

    Attributes:
        partial_trees: of the prefixes, while a generator that has placed them asks for the next tokens.
    """

    partial_trees: Any = None

    def __init__(
        self,
        settings: TransformerConfig,
        embed_tokens: nn.Embedding,
        share: bool,
        dictionary: Any,
        trees: GrowingTrees | GrowingBrackets | None,
        copies: Tensor | None = None,
    ) -> None:
        Decoder.__init__(self, settings, embed_tokens, share, trees, copies)
        self.dictionary = dictionary
        self.onnx_trace = False
        self.adaptive_softmax = None

    def forward(  # type: ignore[override]  # fairseq's interface
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Logits [B, T, V] (or features; log-probabilities of a decoder that copies)."""
        cache = partial = None
        if incremental_state is not None:
            cache = incremental_state.setdefault(KV_CACHE, KVCache())
            partial = self.partial_trees
        padding = encoder_out["encoder_padding_mask"]
        source = EncoderOutput(
            encoder_out["encoder_out"][0].transpose(0, 1),
            ~padding[0] if padding else None,
            encoder_out["src_tokens"][0],
        )
        features = self.decode(prev_output_tokens, source, cache, partial)
        output = features if features_only else self.output(features, source, cache)
        return output, {"attn": [None], "inner_states": []}

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: EncoderOut, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Features [B, T, d_model]."""
        return self.forward(prev_output_tokens, encoder_out, features_only=True, **kwargs)

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """Logits [B, T, V], without what is copied."""
        return self.output_projection(features)

    def reorder_incremental_state_scripting(
        self, incremental_state: dict[str, Any], new_order: Tensor
    ) -> None:
        """Follow the beam."""
        if KV_CACHE in incremental_state:
            incremental_state[KV_CACHE].reorder(new_order)

    def max_positions(self) -> int:
        """Longest target."""
        return self.settings.max_positions


@register_model(MODEL, dataclass=TreeTransformerConfig)
class TreeTransformer(FairseqEncoderDecoderModel):
    """The Transformer with trees injected into its encoder and decoder."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "TreeTransformer":
        """Build from flags and dictionaries.

        Raises:
            OptionError: for another task, for sizes, methods or shared embeddings that do not fit, or
                a target that does not grow the trees that the decoder's methods need.
        """
        if isinstance(task, FairseqTask) and not hasattr(task, "target_linearization"):
            name = getattr(task.cfg, "_name", None) or type(task).__name__
            raise OptionError(
                f"--task {name} gives this model no trees; add --task tree_translation"
            )
        source, target = task.source_dictionary, task.target_dictionary
        sides = [TransformerConfig.from_flags(cfg, side) for side in ("encoder", "decoder")]
        source_embedding = _embedding(source, sides[0])
        share_output = cfg.share_decoder_input_output_embed or cfg.share_all_embeddings
        if cfg.share_all_embeddings:
            if source != target or cfg.encoder_embed_dim != cfg.decoder_embed_dim:
                raise OptionError(
                    "--share-all-embeddings needs one dictionary and one width for both sides; "
                    "binarize with --joined-dictionary"
                )
            target_embedding = source_embedding
        else:
            target_embedding = _embedding(target, sides[1])
        encoder = TreeEncoder(sides[0], source_embedding, source)
        trees = _growing_trees(cfg, task)
        copies = find_copies(task) if getattr(cfg, "copy_source", False) else None
        return cls(
            encoder, TreeDecoder(sides[1], target_embedding, share_output, target, trees, copies)
        )

    def make_generation_fast_(self, **kwargs: Any) -> None:
        """Prepare for search as fairseq does; with ``retain_dropout``, dropout stays on.

        Raises:
            OptionError: if it should stay on in some modules alone.
        """
        super().make_generation_fast_(**kwargs)
        if kwargs.get("retain_dropout"):
            if kwargs.get("retain_dropout_modules"):
                raise OptionError(
                    "--retain-dropout-modules names modules of fairseq's own models; leave it out, "
                    "and dropout stays on in all"
                )
            for module in self.modules():
                if isinstance(module, Dropout):
                    module.retained = True


def is_ours(name: Any) -> bool:
    """Whether a model or an architecture of this name is built by this project's code."""
    registered = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name) or object
    return issubclass(registered, TreeTransformer)


def _growing_trees(cfg: Any, task: Any) -> GrowingTrees | GrowingBrackets | None:
    """How target tokens grow trees, where the decoder uses it and the target is of a linearization
    that does; the decoder itself refuses what it lacks."""
    linearization = getattr(task, "target_linearization", "")
    methods = parse_spec(cfg.decoder_injection)
    if linearization not in GROWING or not any(METHODS[name].needs_tree for name in methods):
        return None
    if task.cfg.left_pad_target:
        raise OptionError(
            f"--decoder-injection {cfg.decoder_injection} reads the target from its start; leave "
            "out --left-pad-target"
        )
    return growing_trees(task.target_dictionary.symbols, linearization)


def _embedding(dictionary: Any, settings: TransformerConfig) -> nn.Embedding:
    embedding = nn.Embedding(len(dictionary), settings.d_model, dictionary.pad())
    nn.init.normal_(embedding.weight, std=settings.embedding_std)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    return embedding
