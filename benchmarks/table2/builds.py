"""The models that are measured: small random builds of the classes behind the paper's Table 2.

A *build* is one model with its inputs; a *row* is one checkpoint the paper lists. Checkpoints of one class differ only
in size, so they share a build. Nothing here needs a network: every model starts from a small configuration.

Importing this module imports neither torch nor transformers, so the driver can list builds cheaply; the functions
of a build run in the measured process, after its copy of transformers was put first on the path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Kwargs = dict[str, Any]

VOCAB = 128
"""Vocabulary of every text model."""

OVERFLOW_TOKEN = VOCAB - 1
"""In the half-precision builds, the one token whose hidden state overflows float16 (see `_plant_overflow`)."""


@dataclass(frozen=True)
class Failure:
    """A call that must raise, to compare the exception: on the model itself or on one of its submodules."""

    arguments: Kwargs
    submodule: Callable[[Any], str] | None = None


@dataclass(frozen=True)
class Build:
    """One model, the rows of the paper it stands for, and the numbers it has to reach.

    Attributes:
        name: what the command line calls it.
        rows: checkpoints of the paper that this build stands for.
        make: returns the model, in evaluation mode; random numbers come from the default generator, already seeded.
        calls: keyword arguments of each call, in order. The first is the paper's; the others change lengths and values.
        failure: a call that raises.
        modeling: modeling file, relative to the transformers package.
        before: breaks (`graphs - 1`) that the unmended model has.
        target: most breaks that the mended model may have; with 0 the call must be whole.
        paper: breaks that the paper's tool leaves.
        note: what the row needs said.
        half: whether the model is in half precision.
        others: further modeling files that it consists of.
    """

    name: str
    rows: tuple[str, ...]
    make: Callable[[], Any]
    calls: Callable[[], list[Kwargs]]
    failure: Callable[[], Failure]
    modeling: str
    before: int
    target: int
    paper: int
    note: str = ""
    half: bool = False
    others: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All modeling files of the build."""
        return (self.modeling, *self.others)


def _ids(seed: int, *shape: int, low: int = 3, high: int = OVERFLOW_TOKEN) -> Any:
    """Random token ids; the special ids below 3 and the overflow token stay out."""
    import torch

    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def _noise(seed: int, *shape: int) -> Any:
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _encoder_decoder_config(**extra: Any) -> Kwargs:
    return {
        "vocab_size": VOCAB,
        "d_model": 64,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128,
        "max_position_embeddings": 64,
        **extra,
    }


def _encoder_only_config(**extra: Any) -> Kwargs:
    return {
        "vocab_size": VOCAB,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        **extra,
    }


# -- inputs -----------------------------------------------------------------------------------------------------------


def _sequence_pairs() -> list[Kwargs]:
    """Encoder and decoder ids: the paper's 1x8, another length, and the first shape with other values."""
    return [
        {"input_ids": _ids(1, 1, 8), "decoder_input_ids": _ids(2, 1, 8)},
        {"input_ids": _ids(3, 1, 12), "decoder_input_ids": _ids(4, 1, 6)},
        {"input_ids": _ids(5, 1, 8), "decoder_input_ids": _ids(6, 1, 8)},
    ]


def _half_pairs() -> list[Kwargs]:
    """The reference batch: a mask, one decoder token. Only the second call overflows, so both sides of the test run."""
    import torch

    calls = []
    for seed, length in ((1, 8), (2, 12), (3, 8)):
        ids = _ids(seed, 4, length)
        mask = torch.ones_like(ids)
        if length > 8:
            ids[1, 2] = OVERFLOW_TOKEN
            mask[2, -3:] = 0
        calls.append({"input_ids": ids, "attention_mask": mask, "decoder_input_ids": torch.full((4, 1), 2)})
    return calls


def _sequences(*lengths: int) -> list[Kwargs]:
    return [{"input_ids": _ids(seed, 1, length)} for seed, length in enumerate(lengths, 1)]


def _speech() -> list[Kwargs]:
    return [
        {"input_features": _noise(seed, 1, 80, 128), "decoder_input_ids": _ids(seed, 1, length)}
        for seed, length in ((1, 8), (2, 5), (3, 8))
    ]


def _documents() -> list[Kwargs]:
    import torch

    calls = []
    for seed, length in ((1, 8), (2, 12), (3, 8)):
        # The paper's boxes are all zero; the other calls use real ones (x0 <= x1, y0 <= y1).
        low = _ids(seed + 10, 1, length, 2, low=0, high=500)
        size = _ids(seed + 20, 1, length, 2, low=0, high=500)
        bbox = torch.cat((low, low + size), dim=-1) if seed > 1 else torch.zeros(1, length, 4, dtype=torch.long)
        calls.append({"input_ids": _ids(seed, 1, length), "bbox": bbox})
    return calls


def _detections() -> list[Kwargs]:
    """Images with a text. The model looks for 101 and 102, which open and close one: only the second call has them."""
    calls = []
    for seed, length in ((1, 8), (2, 10), (3, 8)):
        ids = _ids(seed, 1, length, high=101)
        if length > 8:
            ids[0, 0], ids[0, -1] = 101, 102
        calls.append({"pixel_values": _noise(seed, 1, 3, 32, 32), "input_ids": ids})
    return calls


def _sounds() -> list[Kwargs]:
    import torch

    calls = []
    for seed, length, longer in ((1, 8, True), (2, 12, False), (3, 8, True)):
        ids = _ids(seed, 1, length)
        calls.append(
            {
                "input_ids": ids,
                "attention_mask": torch.ones_like(ids),
                "input_features": _noise(seed, 1, 4, 1001, 64),
                "is_longer": torch.tensor([[longer]]),
            }
        )
    return calls


# -- calls that raise -------------------------------------------------------------------------------------------------


def _both_forms(prefix: str = "") -> Callable[[], Failure]:
    """Ids and embeddings at once: every text model here refuses that."""

    def make() -> Failure:
        arguments = {f"{prefix}input_ids": _ids(1, 1, 8), f"{prefix}inputs_embeds": _noise(1, 1, 8, 64)}
        if prefix:
            arguments["input_ids"] = _ids(2, 1, 8)
        return Failure(arguments)

    return make


def _short_features() -> Failure:
    return Failure({"input_features": _noise(1, 1, 80, 100), "decoder_input_ids": _ids(1, 1, 8)})


def _nothing_given() -> Failure:
    return Failure({})


def _misaligned_shapes() -> Failure:
    """Spatial shapes that do not add up to the sequence: the deformable attention tests that on tensors.

    The list of the same shapes does add up. If it did not, a later operator would fail as well, and once the test no
    longer breaks the graph that operator fails first, while the graph is traced.
    """
    import torch

    def attention(model: Any) -> str:
        kind = "DeformableAttention"
        return next(name for name, module in model.named_modules() if type(module).__name__.endswith(kind))

    shapes = torch.tensor([[4, 4], [2, 2]])
    return Failure(
        {
            "hidden_states": _noise(1, 1, 20, 64),
            "encoder_hidden_states": _noise(2, 1, 21, 64),
            "reference_points": _noise(3, 1, 20, 2, 2).sigmoid(),
            "spatial_shapes": shapes,
            "spatial_shapes_list": [(4, 4), (5, 1)],
            "level_start_index": torch.tensor([0, 16]),
        },
        submodule=attention,
    )


# -- models -----------------------------------------------------------------------------------------------------------


def _t5() -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=VOCAB, d_model=64, d_kv=32, d_ff=128, num_layers=2, num_decoder_layers=2, num_heads=2)
    return T5ForConditionalGeneration(config)


def _whisper() -> Any:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    options = _encoder_decoder_config(
        num_mel_bins=80,
        max_source_positions=64,
        max_target_positions=64,
        decoder_start_token_id=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    del options["max_position_embeddings"]
    return WhisperForConditionalGeneration(WhisperConfig(**options))


def _bart() -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    return BartForConditionalGeneration(BartConfig(**_encoder_decoder_config()))


def _marian() -> Any:
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(MarianConfig(**_encoder_decoder_config(decoder_start_token_id=2, pad_token_id=1)))


def _plant_overflow(model: Any) -> Any:
    """Make one token, and only that one, overflow the last encoder layer in half precision.

    Random weights never overflow, so without this the clamp behind `isinf(...).any()` would never run. Channel 0 of the
    last layer norm is scaled so that the planted token's value exceeds 65504 while ordinary tokens stay far below;
    the decoder's cross-attention ignores that channel, unless it is infinite: then 0 * inf shows as NaN.
    """
    import torch

    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        embedding[OVERFLOW_TOKEN] = 0
        embedding[OVERFLOW_TOKEN, 0] = 50
        model.get_encoder().layers[-1].final_layer_norm.weight[0] = 12_000
        for layer in model.get_decoder().layers:
            for projection in (layer.encoder_attn.k_proj, layer.encoder_attn.v_proj):
                projection.weight[:, 0] = 0
    return model.half()


def _bart_half() -> Any:
    return _plant_overflow(_bart())


def _marian_half() -> Any:
    return _plant_overflow(_marian())


def _blenderbot() -> Any:
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    return BlenderbotForConditionalGeneration(BlenderbotConfig(**_encoder_decoder_config()))


def _pegasus() -> Any:
    from transformers import PegasusConfig, PegasusForCausalLM

    return PegasusForCausalLM(PegasusConfig(**_encoder_decoder_config()))


def _biogpt() -> Any:
    from transformers import BioGptConfig, BioGptForCausalLM

    return BioGptForCausalLM(BioGptConfig(**_encoder_only_config(max_position_embeddings=64)))


def _layoutlmv3() -> Any:
    from transformers import LayoutLMv3Config, LayoutLMv3Model

    config = LayoutLMv3Config(
        **_encoder_only_config(
            visual_embed=False,
            coordinate_size=8,
            shape_size=16,
            max_2d_position_embeddings=1024,
            max_position_embeddings=64,
            input_size=32,
            patch_size=16,
        )
    )
    return LayoutLMv3Model(config)


def _longformer() -> Any:
    from transformers import LongformerConfig, LongformerModel

    return LongformerModel(LongformerConfig(**_encoder_only_config(max_position_embeddings=512, attention_window=8)))


def _phi() -> Any:
    from transformers import Phi3Config, Phi3ForCausalLM

    config = Phi3Config(
        **_encoder_only_config(
            num_key_value_heads=2,
            pad_token_id=0,
            max_position_embeddings=64,
            original_max_position_embeddings=16,
            rope_scaling={"type": "longrope", "short_factor": [1.0] * 16, "long_factor": [2.0] * 16},
        )
    )
    return Phi3ForCausalLM(config)


def _grounding_dino() -> Any:
    from transformers import BertConfig, GroundingDinoConfig, GroundingDinoModel, SwinConfig

    backbone = SwinConfig(
        image_size=32,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[1, 1],
        window_size=2,
        out_features=["stage1", "stage2"],
    )
    config = GroundingDinoConfig(
        backbone_config=backbone,
        text_config=BertConfig(**_encoder_only_config()),
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_queries=4,
        num_feature_levels=2,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
    )
    return GroundingDinoModel(config)


def _clap() -> Any:
    from transformers import ClapConfig, ClapModel

    text = _encoder_only_config(num_hidden_layers=1)
    return ClapModel(ClapConfig(text_config=text, audio_config={"enable_fusion": True}, projection_dim=32))


_ALL = (
    Build(
        name="t5",
        rows=("t5-small", "t5-base", "t5-3b", "flan-t5-large", "it5"),
        make=_t5,
        calls=_sequence_pairs,
        failure=_both_forms("decoder_"),
        modeling="models/t5/modeling_t5.py",
        before=3,
        target=0,
        paper=0,
    ),
    Build(
        name="whisper",
        rows=("whisper-large-v3", "whisper-small", "whisper-base"),
        make=_whisper,
        calls=_speech,
        failure=_short_features,
        modeling="models/whisper/modeling_whisper.py",
        before=3,
        target=0,
        paper=0,
    ),
    Build(
        name="bart",
        rows=("bart-large-cnn", "bart-base", "rebel-large"),
        make=_bart,
        calls=_sequence_pairs,
        failure=_both_forms("decoder_"),
        modeling="models/bart/modeling_bart.py",
        before=3,
        target=0,
        paper=0,
    ),
    Build(
        name="bart-half",
        rows=("bart-large-cnn", "bart-base", "rebel-large"),
        make=_bart_half,
        calls=_half_pairs,
        failure=_both_forms("decoder_"),
        modeling="models/bart/modeling_bart.py",
        before=7,
        target=0,
        paper=0,
        note="half precision, mask, decoder length 1",
        half=True,
    ),
    Build(
        name="marian",
        rows=("opus-mt-fr-en",),
        make=_marian,
        calls=_sequence_pairs,
        failure=_both_forms("decoder_"),
        modeling="models/marian/modeling_marian.py",
        before=3,
        target=0,
        paper=0,
    ),
    Build(
        name="marian-half",
        rows=("opus-mt-fr-en",),
        make=_marian_half,
        calls=_half_pairs,
        failure=_both_forms("decoder_"),
        modeling="models/marian/modeling_marian.py",
        before=6,
        target=0,
        paper=0,
        note="half precision, mask, decoder length 1",
        half=True,
    ),
    Build(
        name="blenderbot",
        rows=("blenderbot-400M-distill",),
        make=_blenderbot,
        calls=_sequence_pairs,
        failure=_both_forms("decoder_"),
        modeling="models/blenderbot/modeling_blenderbot.py",
        before=3,
        target=0,
        paper=0,
    ),
    Build(
        name="biogpt",
        rows=("biogpt",),
        make=_biogpt,
        calls=lambda: _sequences(8, 12, 8),
        failure=_both_forms(),
        modeling="models/biogpt/modeling_biogpt.py",
        before=2,
        target=0,
        paper=0,
    ),
    Build(
        name="pegasus",
        rows=("tiny-random-PegasusForCausalLM",),
        make=_pegasus,
        calls=lambda: _sequences(8, 12, 8),
        failure=_both_forms(),
        modeling="models/pegasus/modeling_pegasus.py",
        before=2,
        target=0,
        paper=0,
    ),
    Build(
        name="layoutlmv3",
        rows=("layoutlmv3-base",),
        make=_layoutlmv3,
        calls=_documents,
        failure=_nothing_given,
        modeling="models/layoutlmv3/modeling_layoutlmv3.py",
        before=2,
        target=0,
        paper=0,
    ),
    Build(
        name="phi",
        rows=("Phi-4-mini-instruct",),
        make=_phi,
        # The original maximum is 16: short, long, short.
        calls=lambda: _sequences(8, 32, 8),
        failure=_both_forms(),
        modeling="models/phi3/modeling_phi3.py",
        before=5,
        target=0,
        paper=0,
        note="the paper's form is wrong from the third call on",
    ),
    Build(
        name="grounding-dino",
        rows=("grounding-dino-tiny", "grounding-dino-base"),
        make=_grounding_dino,
        calls=_detections,
        failure=_misaligned_shapes,
        modeling="models/grounding_dino/modeling_grounding_dino.py",
        others=("models/bert/modeling_bert.py", "models/swin/modeling_swin.py"),
        before=16,
        target=7,
        paper=7,
    ),
    Build(
        name="longformer",
        rows=("longformer-base-4096",),
        make=_longformer,
        # The window is 8: the second call needs no padding, hence says nothing.
        calls=lambda: _sequences(20, 16, 28),
        failure=_both_forms(),
        modeling="models/longformer/modeling_longformer.py",
        before=5,
        target=3,
        paper=3,
    ),
    Build(
        name="clap",
        rows=("clap-htsat-fused",),
        make=_clap,
        calls=_sounds,
        failure=_nothing_given,
        modeling="models/clap/modeling_clap.py",
        before=2,
        target=2,
        paper=2,
    ),
)

BUILDS: Mapping[str, Build] = {build.name: build for build in _ALL}

QUICK = ("t5", "bart-half", "phi", "longformer")
"""Builds of the quick run: a message, a clamp, a rotary update, and one that keeps breaks."""

SHARED_FILES = (
    "activations.py",
    "cache_utils.py",
    "modeling_attn_mask_utils.py",
    "modeling_rope_utils.py",
    "modeling_utils.py",
    "pytorch_utils.py",
    "utils/generic.py",
)
"""Files, relative to the package, that several builds run through besides their own modeling file."""


def select(names: list[str]) -> list[Build]:
    """The builds that these names mean: names of builds or of the paper's rows; all when there are none.

    Raises:
        KeyError: a name that is neither; the message lists what exists.
    """
    if not names:
        return list(_ALL)
    chosen = []
    for name in names:
        found = [build for build in _ALL if name == build.name or name in build.rows]
        if not found:
            known = ", ".join(BUILDS)
            raise KeyError(f"no build or row is called {name!r}; there are: {known}")
        chosen.extend(build for build in found if build not in chosen)
    return chosen
