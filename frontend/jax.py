"""JAX in: a function that JAX can trace, as C or CUDA.

step = uopc.from_jax(train_step, params, x, y)     # traced on the shapes and types of these
params, loss = step(params, x, y)                  # pytrees of arrays in and out

JAX traces and lowers the function to StableHLO; what follows is uopc.from_stablehlo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.dialects.errors import UopcError

if TYPE_CHECKING:
    from uopc.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]


def from_jax(
    function: Callable[..., Any],
    *arguments: Any,
    target: str = "c",
    static_argnums: int | Sequence[int] = (),
    **options: Any,
) -> JaxProgram:
    """A function of JAX, compiled for arguments of these structures, shapes and types.

    `arguments` are pytrees of arrays, numbers or jax.ShapeDtypeStruct. Those at `static_argnums`
    are values that the trace takes in; a call passes the others. `options` are those of
    `uopc.compile`. The result takes and gives the same pytrees, with numpy arrays in them.

    Raises UnsupportedError, which is a UopcError and a NotImplementedError, for an op that has no
    conversion, and UopcError [missing-dependency] where jax is not installed; what JAX raises
    while it traces comes through.
    """
    return JaxProgram(function, arguments, target, static_argnums, options)


class JaxProgram:
    """A traced and compiled function of pytrees."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        target: str,
        static_argnums: int | Sequence[int],
        options: dict[str, Any],
    ) -> None:
        from uopc.frontend.stablehlo import from_stablehlo

        jax = _import_jax()
        self._jax: Any = jax
        static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        lowered = jax.jit(function, static_argnums=static, keep_unused=True).lower(*arguments)
        self.stablehlo: str = lowered.as_text()
        """What JAX lowered the function to."""
        self.executable: Executable | Any = from_stablehlo(self.stablehlo, target, **options)
        left_out = {position % len(arguments) for position in static}
        given = [each for k, each in enumerate(arguments) if k not in left_out]
        self._structure = jax.tree.structure(tuple(given))
        self._inputs = [_data_type(jax, leaf) for leaf in jax.tree.leaves(lowered.in_avals)]
        outputs, self._results = jax.tree.flatten(lowered.out_info)
        self._keys = [_key_implementation(jax, leaf) for leaf in outputs]

    @property
    def plan(self) -> Any:
        """The plan; see Executable."""
        return self.executable.plan

    @property
    def source(self) -> str:
        """The C."""
        return self.executable.source

    def __call__(self, *arguments: Any) -> Any:
        """The results for arguments of the structure that was traced. Raises UopcError."""
        leaves, structure = self._jax.tree.flatten(arguments)
        if structure != self._structure:
            raise UopcError(
                "wrong-type",
                f"the arguments are {structure}",
                hint=f"the function was traced for {self._structure}",
            )
        values = list(map(self._array, leaves, self._inputs))
        results: Any = self.executable(*values)
        found: list[Any] = [*results] if isinstance(results, tuple) else [results]
        wrapped = [
            array if key is None else self._jax.random.wrap_key_data(array, impl=key)
            for array, key in zip(found, self._keys, strict=True)
        ]
        return self._jax.tree.unflatten(self._results, wrapped)

    def _array(self, leaf: Any, type_: np.dtype[Any]) -> Array:
        """A leaf as an array: Python's numbers in the type that they were traced in, keys as
        their data, 64 bits as 32 unless JAX is told to keep them."""
        if isinstance(leaf, bool | int | float):
            return np.asarray(leaf, type_)
        if _key_implementation(self._jax, leaf) is not None:
            leaf = self._jax.random.key_data(leaf)
        array = np.asarray(leaf)
        if array.dtype != type_ and self._jax.dtypes.canonicalize_dtype(array.dtype) == type_:
            return array.astype(type_)  # as JAX does without x64
        return array


def _import_jax() -> Any:
    try:
        import jax  # pyright: ignore[reportMissingImports] (an extra)
    except ImportError as error:
        raise UopcError(
            "missing-dependency",
            f"functions are traced with the package jax: {error}",
            hint="pip install 'uopc[jax]'",
        ) from error
    return jax


def _key_implementation(jax: Any, leaf: Any) -> Any | None:
    """The type of a leaf's random keys, which says how they are made, or None for numbers."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return None
    return dtype


def _data_type(jax: Any, leaf: Any) -> np.dtype[Any]:
    """The dtype of the array that a leaf of the trace becomes."""
    if _key_implementation(jax, leaf) is not None:
        return np.dtype(np.uint32)
    return np.dtype(leaf.dtype)
