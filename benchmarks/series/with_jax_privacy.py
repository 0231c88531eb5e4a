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
    periods, kind = int(question["periods"]), question["kind"]
    if kind == "toeplitz":
        column = np.asarray(toeplitz.optimal_max_error_strategy_coefs(periods))
        return _of_column(column)
    if kind == "buffered":
        found = buffered_toeplitz.optimize(n=periods)
        blt = found[0] if isinstance(found, tuple) else found
        return _of_column(np.asarray(blt.toeplitz_coefs(periods)))
    matrix = np.asarray(dense.optimize(periods))
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
