"""Errors of jax_privacy's factorisations of totals, in its own environment."""

import math

import numpy as np

from benchmarks.peers import Answer, Question, serve, versions


def answer(question: Question) -> Answer:
    """Root mean square and greatest deviation of totals for columns of length at most 1."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    from jax_privacy.matrix_factorization import buffered_toeplitz, dense, toeplitz

    if question.get("versions"):
        return versions("jax-privacy", "jax")
    periods, kind, turns = int(question["periods"]), question["kind"], question["turns"]
    more = {} if turns is None else {"max_optimizer_steps": int(turns)}
    if kind == "toeplitz":
        return _of_column(np.asarray(toeplitz.optimal_max_error_strategy_coefs(periods)))
    if kind == "toeplitz by optimiser":
        return _of_column(np.asarray(toeplitz.optimize_banded_toeplitz(periods, periods, **more)))
    if kind.startswith("buffered"):
        blt = buffered_toeplitz.optimize(n=periods, error=kind.split()[1], **more)
        return _of_column(np.asarray(blt.toeplitz_coefs(periods)))
    matrix = np.asarray(dense.optimize(periods, **more))
    matrix = matrix / np.sqrt((matrix**2).sum(axis=0).max())
    ones = jnp.tril(jnp.ones((periods, periods)))
    rest = np.asarray(jnp.linalg.solve(matrix.T, ones.T)).T
    norms = np.sqrt((rest**2).sum(axis=1))
    return {"rmse": math.sqrt(float(np.mean(norms**2))), "worst": float(norms.max())}


def _of_column(column: np.ndarray) -> Answer:
    inverse = np.zeros(len(column))
    inverse[0] = 1 / column[0]
    for k in range(1, len(column)):
        inverse[k] = -float(column[1 : k + 1] @ inverse[:k][::-1]) / column[0]
    norms = np.sqrt(np.cumsum(np.cumsum(inverse) ** 2) * np.sum(column**2))
    return {"rmse": math.sqrt(float(np.mean(norms**2))), "worst": float(norms.max())}


if __name__ == "__main__":
    serve(answer)
