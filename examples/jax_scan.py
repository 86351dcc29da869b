"""A scan of JAX, as C: a damped pendulum driven by a torque, step by step, and its gradient.

pip install 'uopc[jax]' && python examples/jax_scan.py
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uopc

STEPS, TIME = 50, 0.05


def swing(start: Any, torques: Any) -> Any:
    """The angles after each step of semi-implicit Euler, from (angle, speed)."""

    def step(state: Any, torque: Any) -> Any:
        angle, speed = state
        speed = speed + TIME * (torque - jnp.sin(angle) - 0.1 * speed)
        angle = angle + TIME * speed
        return (angle, speed), angle

    return jax.lax.scan(step, start, torques)[1]


def effort(torques: Any, start: Any) -> Any:
    """How far the pendulum ends from upright."""
    return (swing(start, torques)[-1] - jnp.pi) ** 2


def main() -> None:
    """Compile, run, and compare with JAX."""
    start = (np.float32(0.5), np.float32(0.0))
    torques = np.sin(np.arange(STEPS, dtype=np.float32))
    for function, arguments in ((swing, (start, torques)), (jax.grad(effort), (torques, start))):
        program = uopc.from_jax(function, *arguments)
        got, expected = program(*arguments), np.asarray(jax.jit(function)(*arguments))
        print(f"{len(program.plan.kernels)} kernels, difference {np.abs(got - expected).max():.2g}")
        np.testing.assert_allclose(got, expected, 1e-4, 1e-5)


if __name__ == "__main__":
    main()
