"""Which arguments torch takes as whole numbers, from the schemas of the installed torch: the text of `integers.yaml`.

python -m benchmarks.signatures.integers > graphmend/signatures/integers.yaml
"""

from __future__ import annotations

import re
from collections import defaultdict

import torch

_WHOLE = frozenset({"int", "SymInt", "List[int]", "List[SymInt]"})
_LISTS = frozenset({"List[int]", "List[SymInt]"})
_TENSORS = frozenset({"Tensor", "List[Tensor]"})
_NO_NUMBERS = frozenset(
    {
        *(
            "self",
            "dtype",
            "out_dtype",
            "layout",
            "memory_format",
            "generator",
            "implicit",
            "reduction",
            "compute_mode",
        ),
        *("dim", "dims", "axis", "dim0", "dim1", "dims_self", "dims_other", "axis0", "axis1", "interpolation_mode"),
        *("padding_mode", "mode", "seed", "blocksize", "dense_dim", "sparse_dim", "dimension", "source", "destination"),
    }
)
"""Parameters that are whole numbers for the schema alone, or that nobody computes from data."""
_MAKERS = frozenset({"tensor", "as_tensor", "scalar_tensor"})
"""They take numbers and tensors alike; only TorchScript's overloads say otherwise."""
_BACKENDS = ("cudnn_", "miopen_", "mkldnn_", "quantized_", "fused_", "fbgemm_", "native_", "fake_quantize_")
HEAD = """\
# Arguments that torch takes as whole numbers or lists of such: name and position (the receiver of a method being 0);
# `1+`: from there on, as the numbers of a list may be given one by one. A tensor there ends the graph (GB0033), as its
# value is read. Made by `python -m benchmarks.signatures.integers`; a test keeps it equal to what that gives with the
# torch that the tests run with.
"""


def whole_numbers() -> dict[str, dict[str, str]]:
    """The parameters of each public operation of torch that no overload takes a tensor for, with their positions.

    A parameter that can only be given by its keyword has the position -1.
    """
    places: dict[str, dict[str, set[tuple[int, bool]]]] = defaultdict(lambda: defaultdict(set))
    taken: dict[str, set[str | int]] = defaultdict(set)
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "aten" or name.startswith("_") or not _is_public(name) or not _is_of_tensors(schema):
            continue
        positional = [argument.name for argument in schema.arguments if not argument.kwarg_only]
        alone = [name for name in positional if name != "self"][:2]
        for position, argument in enumerate(schema.arguments):
            kind = re.sub(r"^Optional\[(.*)\]$", r"\1", str(argument.type))
            if kind in _TENSORS and argument.name != "self":
                taken[name] |= {argument.name, position}
            elif kind in _WHOLE and argument.name not in _NO_NUMBERS:
                place = -1 if argument.kwarg_only else position
                places[name][argument.name].add((place, kind in _LISTS and alone == [argument.name]))
    found: dict[str, dict[str, str]] = {}
    for name, parameters in sorted(places.items()):
        kept = {
            parameter: f"{position}{'+' if onwards else ''}"
            for parameter, positions in sorted(parameters.items())
            for position, onwards in [max(positions)]
            if parameter not in taken[name] and position not in taken[name]
        }
        if kept:
            found[name] = kept
    return found


def _is_of_tensors(schema: torch.FunctionSchema) -> bool:
    """Whether an overload computes a tensor; there are others, of the same name, for plain numbers."""
    return any(str(each.type) in _TENSORS for each in schema.returns)


def _is_public(name: str) -> bool:
    return (
        name not in _MAKERS
        and not name.startswith(_BACKENDS)
        and any(hasattr(owner, name) for owner in (torch, torch.Tensor, torch.nn.functional))
    )


def as_yaml() -> str:
    """The text of the table."""
    lines = [
        f"{name}: {{{', '.join(f'{parameter}: {position}' for parameter, position in parameters.items())}}}"
        for name, parameters in whole_numbers().items()
    ]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(as_yaml(), end="")
