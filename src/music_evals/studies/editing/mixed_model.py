"""The mixed model of an editing test, by statsmodels: what is left of a load beside editor, piece and order.

log(load) ~ model * style + order + (1 | editor) + (1 | piece) + (1 | sample). Where single ratios average over editors
first, this takes every edit for itself, though samples have different editors. The last term is ours: edits of one
sample share what is in it, and without it intervals of simulated studies cover less than they promise
(`benchmarks/editing_study`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from music_evals.errors import InvalidInputError, importing
from music_evals.metrics.editing import LOADS
from music_evals.pipelines.study_tables import StudyTables

__all__ = ["mixed_models"]

_ATTEMPTS = ("lbfgs", "powell", "nm")
"""Ways to fit, one after the other until one converges."""


def mixed_models(
    tables: StudyTables, *, confidence: float = 0.95, epsilon: float = 0.0, with_samples: bool = True
) -> list[dict[str, Any]]:
    """Fit one model for each load.

    Parameters
    ----------
    confidence
        Level of the intervals: Student's, with as many degrees of freedom as there are pairs, less styles.
    epsilon
        Added to loads before their logarithm is taken; with 0 a load of 0 is refused, and the message names its row.
    with_samples
        Whether samples are a term; without, it is the model of the paper's design alone.

    Returns
    -------
    list of dict
        One row for each load and term: ``proposed / baseline`` over all styles, the same for each style where there are
        several, and ``order``, the factor for each sample that the editor had done before. ``ratio`` with ``ci_low``,
        ``ci_high`` and ``p`` against 1; ``sd_editor``, ``sd_piece``, ``sd_sample`` and ``sd_residual`` of the
        logarithm; ``n`` edits; ``note`` says why the numbers are NaN where the fit did not converge.

    Raises
    ------
    MissingBackendError
        statsmodels is not installed.

    Examples
    --------
    >>> from music_evals.studies.editing.simulation import StudyDesign, simulate_study
    >>> study = simulate_study(StudyDesign(ratio=0.5, n_listeners=0), rng=np.random.default_rng(0))
    >>> row = mixed_models(study)[0]
    >>> row["load"], row["term"], row["ci_low"] < 0.5 < row["ci_high"]
    ('time', 'proposed / baseline', True)
    """
    kinds = ("editor", "piece", *(("sample",) if with_samples else ()))
    return [
        row
        for load, column in LOADS.items()
        for row in _model(tables, load, column, confidence=confidence, epsilon=epsilon, kinds=kinds)
    ]


def _model(
    tables: StudyTables, load: str, column: str, *, confidence: float, epsilon: float, kinds: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    with importing("studies", "the mixed model of an editing test"):
        import pandas as pd
        from scipy.stats import t
        from statsmodels.regression.mixed_linear_model import MixedLM

    edits = tables.edits
    values = edits[column] + epsilon
    if (values <= 0).any():
        number = int(np.flatnonzero(values <= 0)[0]) + 1
        raise InvalidInputError(f"edits, row {number}: {column} is 0, which has no logarithm; give an `epsilon`")
    samples = {name: tables.samples[name] for name in ("piece_id", "style", "role")}
    index = {sample: place for place, sample in enumerate(tables.samples["sample_id"].tolist())}
    place = np.array([index[sample] for sample in edits["sample_id"].tolist()])
    styles = list(dict.fromkeys(samples["style"].tolist()))
    role = np.where(samples["role"][place] == "proposed", 0.5, -0.5)
    # each style has its own level and its own effect; the effect over all is their mean
    is_style = np.stack([samples["style"][place] == style for style in styles], axis=1).astype(np.float64)
    fixed, terms = [is_style, is_style * role[:, None]], len(styles)
    order = edits.get("order_index")
    if order is not None and not np.isnan(order).any() and len(np.unique(order)) > 1:
        fixed.append((order - order.mean())[:, None])
    exog = np.concatenate(fixed, axis=1)
    groups = pd.DataFrame({"editor": edits["editor_id"], "piece": samples["piece_id"][place],
                           "sample": edits["sample_id"], "one": 1})  # fmt: skip
    parts = {name: f"0 + C({name})" for name in kinds if 1 < groups[name].nunique() < len(groups)}
    names = [f"x{number}" for number in range(exog.shape[1])]
    frame = groups.assign(y=np.log(values), **dict(zip(names, exog.T, strict=True)))
    model = MixedLM.from_formula(f"y ~ 0 + {' + '.join(names)}", frame, groups="one", vc_formula=parts)
    fit, note = _fitted(model)
    freedom = max(1, len(np.unique(place)) // 2 - len(styles))
    width = t.ppf((1 + confidence) / 2, freedom)
    sds = dict.fromkeys(("sd_editor", "sd_piece", "sd_sample", "sd_residual"), math.nan)  # of the logarithm
    if fit is not None:
        sds["sd_residual"] = math.sqrt(float(fit.scale))
        sds |= {f"sd_{name}": math.sqrt(max(0.0, float(of))) for name, of in zip(sorted(parts), fit.vcomp, strict=True)}
    for term, weights in _contrasts(styles, terms, exog.shape[1]):
        row: dict[str, Any] = {"load": load, "term": term}
        row |= dict.fromkeys(("ratio", "ci_low", "ci_high", "p"), math.nan)
        if fit is not None:
            effect = float(weights @ np.asarray(fit.fe_params))
            covariance = np.asarray(fit.cov_params())[: len(names), : len(names)]
            error = math.sqrt(float(weights @ covariance @ weights))
            row |= {
                "ratio": math.exp(effect),
                "ci_low": math.exp(effect - width * error),
                "ci_high": math.exp(effect + width * error),
                "p": 2 * float(t.sf(abs(effect) / error, freedom)),
            }
        yield {**row, **sds, "n": len(values), "note": note}


def _contrasts(styles: list[str], n_styles: int, n_columns: int) -> Iterator[tuple[str, Any]]:
    """Yield terms with their weights of the fixed effects."""
    effects = np.zeros((n_styles, n_columns))
    effects[:, n_styles : 2 * n_styles] = np.eye(n_styles)
    yield "proposed / baseline", effects.mean(axis=0)
    if n_styles > 1:
        yield from ((f"proposed / baseline, {style}", effects[number]) for number, style in enumerate(styles))
    if n_columns > 2 * n_styles:
        weights = np.zeros(n_columns)
        weights[-1] = 1
        yield "order", weights


def _fitted(model: Any) -> tuple[Any, str]:
    """Return a fit that converged, or none and why."""
    for method in _ATTEMPTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is looked at below
            try:
                fit = model.fit(reml=True, method=method)
            except (np.linalg.LinAlgError, ValueError):
                continue
            errors = np.asarray(fit.bse_fe)
        if fit.converged and np.isfinite(errors).all() and (errors > 0).all():
            return fit, ""
    return None, f"the model did not converge by {', '.join(_ATTEMPTS)}; there are too few edits for it"
