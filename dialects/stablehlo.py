"""stablehlo and chlo: the ops of StableHLO, to read what JAX and torch-mlir write.

Loaded by uopc's own tools only, never by the `xdsl.universe` entry point: other projects bring
dialects of these names. There is no meaning here; convert-stablehlo-to-utensor gives it.

A row of the tables is an op: its form (stablehlo_text.py; None: generic only) and its properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import irdl_op_definition, opt_prop_def, traits_def
from xdsl.traits import IsTerminator, Pure

from uopc.dialects import stablehlo_attributes as a
from uopc.dialects.stablehlo_forms import SPECIAL_FORMS
from uopc.dialects.stablehlo_text import HloOp, WrittenOp, items_form

_WORDS: dict[str, type[a.WordAttr]] = {
    "comparison_direction": a.ComparisonDirectionAttr,
    "compare_type": a.ComparisonTypeAttr,
    "rng_algorithm": a.RngAlgorithmAttr,
    "rng_distribution": a.RngDistributionAttr,
    "fft_type": a.FftTypeAttr,
}


@dataclass(frozen=True)
class Row:
    """How an op is written, and the properties it may have."""

    form: str | None
    properties: tuple[str, ...] = field(default=())


_PLAIN = (
    "abs add and atan2 bitcast_convert cbrt ceil clamp complex convert cosine "
    "count_leading_zeros divide exponential exponential_minus_one floor get_tuple_element imag "
    "is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power "
    "real remainder reshape round_nearest_afz round_nearest_even rsqrt select shift_left "
    "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh tuple xor "
    "uniform_dequantize uniform_quantize optimization_barrier return dynamic_update_slice "
    "dynamic_reshape real_dynamic_slice dynamic_pad after_all create_token partition_id "
    "replica_id cross-replica-sum"
)
"""Ops that are written `%operands : types`."""

STABLEHLO_ROWS: dict[str, Row] = {
    **{name: Row("%", ("result_accuracy",)) for name in _PLAIN.split()},
    "constant": Row("constant", ("value",)),
    "iota": Row("%, dim:iota_dimension", ("iota_dimension",)),
    "dynamic_iota": Row("%, dim:iota_dimension", ("iota_dimension",)),
    "compare": Row(
        "=comparison_direction, %, =compare_type", ("comparison_direction", "compare_type")
    ),
    "broadcast_in_dim": Row("%, dims:broadcast_dimensions", ("broadcast_dimensions",)),
    "dynamic_broadcast_in_dim": Row(
        "%, dims:broadcast_dimensions",
        ("broadcast_dimensions", "known_expanding_dimensions", "known_nonexpanding_dimensions"),
    ),
    "broadcast": Row("%, sizes:broadcast_sizes", ("broadcast_sizes",)),
    "transpose": Row("%, dims:permutation", ("permutation",)),
    "reverse": Row("%, dims:dimensions", ("dimensions",)),
    "concatenate": Row("%, dim:dimension", ("dimension",)),
    "pad": Row(
        "%, low:edge_padding_low, high:edge_padding_high, interior:interior_padding",
        ("edge_padding_low", "edge_padding_high", "interior_padding"),
    ),
    "slice": Row("slice", ("start_indices", "limit_indices", "strides")),
    "dynamic_slice": Row("%, sizes:slice_sizes", ("slice_sizes",)),
    "get_dimension_size": Row("%, dim:dimension", ("dimension",)),
    "set_dimension_size": Row("%, dim:dimension", ("dimension",)),
    "dot": Row("dot", ("precision_config",)),
    "dot_general": Row("dot", ("dot_dimension_numbers", "precision_config", "algorithm")),
    "convolution": Row(
        "convolution",
        (
            "dimension_numbers", "window_strides", "padding", "lhs_dilation", "rhs_dilation",
            "window_reversal", "feature_group_count", "batch_group_count", "precision_config",
        ),
    ),
    "reduce": Row("reduce", ("dimensions",)),
    "reduce_window": Row(
        None,
        ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding"),
    ),
    "select_and_scatter": Row(None, ("window_dimensions", "window_strides", "padding")),
    "gather": Row(None, ("dimension_numbers", "slice_sizes", "indices_are_sorted")),
    "dynamic_gather": Row(None, ("dimension_numbers", "indices_are_sorted")),
    "scatter": Row(
        None, ("scatter_dimension_numbers", "indices_are_sorted", "unique_indices")
    ),
    "torch_index_select": Row(None, ("dim", "batch_dims")),
    "sort": Row(None, ("dimension", "is_stable")),
    "map": Row(None, ("dimensions",)),
    "if": Row(None),
    "case": Row(None),
    "while": Row("while"),
    "reduce_precision": Row("reduce_precision", ("exponent_bits", "mantissa_bits")),
    "rng": Row("%, distribution:rng_distribution", ("rng_distribution",)),
    "rng_bit_generator": Row("%, algorithm:rng_algorithm", ("rng_algorithm",)),
    "cholesky": Row("%, lower:lower", ("lower",)),
    "triangular_solve": Row(None, ("left_side", "lower", "unit_diagonal", "transpose_a")),
    "fft": Row("%, type:fft_type, length:fft_length", ("fft_type", "fft_length")),
    "batch_norm_inference": Row(None, ("epsilon", "feature_index")),
    "batch_norm_training": Row(None, ("epsilon", "feature_index")),
    "batch_norm_grad": Row(None, ("epsilon", "feature_index")),
    "einsum": Row(None, ("einsum_config",)),
    "custom_call": Row(
        "custom_call",
        (
            "call_target_name", "has_side_effect", "backend_config", "api_version",
            "called_computations", "operand_layouts", "result_layouts", "output_operand_aliases",
        ),
    ),
    "composite": Row(
        "composite", ("name", "composite_attributes", "decomposition", "version")
    ),
    **{
        name: Row(
            None,
            (
                "replica_groups", "channel_handle", "channel_id", "use_global_device_ids",
                "all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension",
                "split_count", "source_target_pairs",
            ),
        )
        for name in (
            "all_gather", "all_reduce", "all_to_all", "reduce_scatter", "collective_broadcast",
            "collective_permute",
        )
    },
    **{
        name: Row(
            None,
            (
                "channel_handle", "is_host_transfer", "infeed_config", "outfeed_config", "layout",
                "source_target_pairs",
            ),
        )
        for name in ("infeed", "outfeed", "send", "recv")
    },
}  # fmt: skip

_CHLO_UNARY = (
    "acos acosh asin asin_acos_kernel asinh atan atanh bessel_i1e conj constant_like cosh digamma "
    "erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma mulhi next_after polygamma sinh square "
    "tan zeta"
)
_CHLO_BROADCAST = (
    "add and atan2 complex divide maximum minimum multiply next_after or polygamma power "
    "remainder select shift_left shift_right_arithmetic shift_right_logical subtract xor zeta"
)

CHLO_ROWS: dict[str, Row] = {
    **{name: Row("%", ("value",)) for name in _CHLO_UNARY.split()},
    **{
        f"broadcast_{name}": Row("%, dims:broadcast_dimensions", ("broadcast_dimensions",))
        for name in _CHLO_BROADCAST.split()
    },
    "broadcast_compare": Row(
        None, ("broadcast_dimensions", "comparison_direction", "compare_type")
    ),
    "constant": Row("constant", ("value",)),
    "top_k": Row("(%, k:k)", ("k", "largest")),
    "ragged_dot": Row(None, ("ragged_dot_dimension_numbers", "precision_config")),
    "scan": Row(
        "scan",
        (
            "dimension", "is_reverse", "is_associative", "operandSegmentSizes",
            "resultSegmentSizes",
        ),
    ),
}  # fmt: skip

ARITIES: dict[int, str] = {
    0: "constant iota",
    1: (
        "abs bitcast_convert broadcast broadcast_in_dim cbrt ceil cholesky convert cosine "
        "count_leading_zeros exponential exponential_minus_one fft floor get_dimension_size imag "
        "is_finite log log_plus_one logistic negate not popcnt real reduce_precision reshape "
        "reverse round_nearest_afz round_nearest_even rsqrt sign sine slice sqrt tan tanh "
        "transpose acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv "
        "erfc is_inf is_neg_inf is_pos_inf lgamma sinh square constant_like"
    ),
    2: (
        "broadcast_add broadcast_and broadcast_atan2 broadcast_compare broadcast_divide "
        "broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after broadcast_or "
        "broadcast_polygamma broadcast_power broadcast_remainder broadcast_shift_left "
        "broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract "
        "broadcast_xor broadcast_zeta torch_index_select "
        "add and atan2 compare complex convolution divide dot dot_general dynamic_broadcast_in_dim "
        "dynamic_reshape gather maximum minimum mulhi multiply next_after or pad polygamma power "
        "remainder shift_left shift_right_arithmetic shift_right_logical subtract "
        "triangular_solve xor zeta"
    ),
    3: "broadcast_select clamp ragged_dot select select_and_scatter",
    4: "real_dynamic_slice",
    5: "batch_norm_inference dynamic_pad",
}
"""How many operands the ops of one result have, where that is always the same."""

_ARITY = {name: arity for arity, names in ARITIES.items() for name in names.split()}


def _op(dialect: str, name: str, row: Row) -> type[Operation]:
    """The class of an op, made from its row."""
    members: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"{dialect}.{name}: see StableHLO's specification.",
        "__annotations__": {
            "WORDS": ClassVar[Mapping[str, type[a.WordAttr]]],
            "PROPERTIES": ClassVar[frozenset[str]],
            "ARITY": ClassVar[int | None],
            "FORM": ClassVar[Any],
        },
        "name": f"{dialect}.{name}",
        "WORDS": {each: _WORDS[each] for each in row.properties if each in _WORDS},
        "PROPERTIES": frozenset(row.properties),
        "ARITY": _ARITY.get(name),
        **{f"{each}_": opt_prop_def(Attribute, prop_name=each) for each in row.properties},
        "traits": traits_def(IsTerminator() if name == "return" else Pure()),
    }
    base: type[HloOp] = HloOp
    if row.form is not None:
        base = WrittenOp
        members["FORM"] = SPECIAL_FORMS.get(row.form) or items_form(row.form)
    class_name = "".join(part.capitalize() for part in name.replace("-", "_").split("_")) + "Op"
    return irdl_op_definition(cast("type[HloOp]", type(class_name, (base,), members)))


StableHLO = Dialect(
    "stablehlo",
    [_op("stablehlo", name, row) for name, row in STABLEHLO_ROWS.items()],
    [*a.STABLEHLO_ATTRIBUTES],
)
CHLO = Dialect(
    "chlo", [_op("chlo", name, row) for name, row in CHLO_ROWS.items()], [*a.CHLO_ATTRIBUTES]
)
