"""Consistency: the rules between two or more settings that can be checked without the data."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from smxgb.limits import PORTS
from smxgb.settings.hyperparameters import DASHBOARD_PORT
from smxgb.settings.objectives import OBJECTIVES, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.settings.hyperparameters import Hyperparameters

type Finding = tuple[frozenset[str], str]
"""The settings that a sentence speaks of, by their names, and the sentence."""

_LINEAR_UPDATERS = frozenset({"shotgun", "coord_descent"})
_MODIFIERS = frozenset({"refresh", "prune"})


def conflicts(settings: Hyperparameters, *, has_model: bool = False) -> Iterator[Finding]:
    """Yield the settings that contradict each other, or need one that is absent.

    `has_model` says that training goes on from a model.
    """
    yield from _about_objective(settings)
    yield from _about_groups(settings)
    yield from _about_base_score(settings)
    yield from _about_trees(settings)
    yield from _about_updaters(settings, has_model=has_model)
    yield from _about_columns(settings)
    yield from _about_class_labels(settings)
    yield from _about_categories(settings)
    yield from _about_cross_validation(settings)
    yield from _about_ports(settings)


def _finding(names: set[str], text: str) -> Finding:
    return frozenset(names), text


def _about_objective(settings: Hyperparameters) -> Iterator[Finding]:
    objective = settings.objective
    if settings.num_class is not None and kind_of(objective) != "multi-class":
        yield _finding(
            {"num_class", "objective"},
            f"num_class={settings.num_class} goes with multi:softmax and multi:softprob only, "
            f"not with objective={objective}: leave it out, or change the objective.",
        )
    needed = OBJECTIVES[objective].alphas
    if needed and not getattr(settings, needed):
        yield _finding(
            {needed, "objective"},
            f"objective={objective} needs {needed}: a number from 0 to 1, or a list, as [0.1, 0.9].",
        )
    for field in ("quantile_alpha", "expectile_alpha"):
        alphas = list(getattr(settings, field) or ())
        if alphas != sorted(alphas):
            yield _finding({field}, f"{field} must ascend: write it as {sorted(alphas)}.")
    bounds = {name: getattr(settings, name) for name in ("label_lower_column", "label_upper_column")}
    if objective == "survival:aft":
        for name, column in bounds.items():
            if column is None:
                yield _finding(
                    {name, "objective"},
                    f"objective=survival:aft needs {name}: a column's name or index.",
                )
    else:
        for name, column in bounds.items():
            if column is not None:
                yield _finding(
                    {name, "objective"},
                    f"{name} goes with objective=survival:aft only, not with {objective}: leave it out "
                    "(or name it in drop_columns).",
                )


def _about_groups(settings: Hyperparameters) -> Iterator[Finding]:
    objective = settings.objective
    given = {"csv_weights": settings.csv_weights, "weight_column": settings.weight_column is not None}
    weights = next((name for name, is_given in given.items() if is_given), None)
    if weights and settings.group_column is not None and kind_of(objective) != "ranking":
        yield _finding(
            {weights, "group_column", "objective"},
            f"with group_column XGBoost reads one weight for each group, and objective={objective} needs one "
            f"for each row: leave out group_column or {weights}.",
        )


def _about_base_score(settings: Hyperparameters) -> Iterator[Finding]:
    objective = settings.objective
    scores = settings.base_score or ()
    outputs = settings.outputs
    if len(scores) > 1 and outputs not in {None, len(scores)}:
        yield _finding(
            {"base_score", "objective", "num_class", "quantile_alpha", "expectile_alpha"},
            f"base_score has {len(scores)} numbers, and the model has {outputs} "
            f"output{'s' if outputs != 1 else ''}: give one number, or one for each output.",
        )
    # XGBoost accepts a probability of 0 or 1, but its log-odds are infinite, and no round can correct them.
    low, high = OBJECTIVES[objective].base_score
    if not all(low < score < high for score in scores):
        below = "" if high == inf else f" and below {high:g}"
        yield _finding(
            {"base_score", "objective"},
            f"base_score={_shown(scores)} is not allowed with objective={objective}: it must be above "
            f"{low:g}{below}; change it or leave it out.",
        )


def _about_trees(settings: Hyperparameters) -> Iterator[Finding]:
    if settings.booster == "gblinear":
        return
    chosen, fields = settings.method_as_set, {"updater", "tree_method"}
    exact = settings.method == "exact"
    if exact and settings.max_depth == 0:
        yield _finding(
            fields | {"max_depth"},
            f"max_depth=0 (no limit) does not go with {chosen}: set a depth, or {settings.to_hist}.",
        )
    if exact and settings.sampling_method == "gradient_based" and (settings.subsample or 1) < 1:
        yield _finding(
            fields | {"sampling_method", "subsample"},
            f"sampling_method=gradient_based does not go with {chosen}: {settings.to_hist}.",
        )
    hist = settings.method == "hist" and "prune" not in (settings.updater or ())
    if settings.multi_strategy == "multi_output_tree" and not hist:
        yield _finding(
            fields | {"multi_strategy"},
            f"multi_strategy=multi_output_tree does not go with {chosen}: {settings.to_hist}.",
        )


def _about_updaters(settings: Hyperparameters, *, has_model: bool) -> Iterator[Finding]:
    if settings.process_type == "update":
        yield from _about_updates(settings, has_model=has_model)
        return
    updaters = settings.updater or ()
    linear = settings.booster == "gblinear"
    wrong = [name for name in updaters if (name in _LINEAR_UPDATERS) != linear]
    if wrong:
        booster = "gblinear" if linear else settings.booster or "gbtree"
        allowed = (
            "shotgun or coord_descent"
            if linear
            else "grow_quantile_histmaker, grow_histmaker or grow_colmaker"
        )
        yield _finding(
            {"updater", "booster"},
            f"updater={wrong[0]} does not go with booster={booster}: use {allowed}, or leave it out.",
        )
    elif len(growers := [name for name in updaters if name.startswith("grow_")]) > 1:
        yield _finding(
            {"updater"},
            f"updater={','.join(updaters)} names {len(growers)} that grow trees, and a tree is grown by one: "
            "keep one of them.",
        )
    elif updaters and updaters[0] in _MODIFIERS:
        yield _finding(
            {"updater"},
            f"updater={updaters[0]} changes trees and builds none: put one that grows trees before it, "
            "as in grow_colmaker,prune, or leave updater out.",
        )


def _about_updates(settings: Hyperparameters, *, has_model: bool) -> Iterator[Finding]:
    if not has_model:
        yield _finding(
            {"process_type"},
            "process_type=update changes an earlier model's trees, and a job has none: leave it out, "
            "or give the model in a channel 'model'.",
        )
    elif not set(settings.updater or ("none",)) <= _MODIFIERS:
        yield _finding(
            {"process_type", "updater"},
            "process_type=update needs updaters that change trees: set updater=refresh, or refresh,prune.",
        )


def _about_categories(settings: Hyperparameters) -> Iterator[Finding]:
    field = "categorical_columns" if settings.categorical_columns else "enable_categorical"
    if not getattr(settings, field):
        return
    if settings.booster == "gblinear":
        chosen, instead = "booster=gblinear", "use booster=gbtree"
    elif settings.method == "exact":
        chosen, instead = settings.method_as_set, settings.to_hist
    else:
        return
    yield _finding(
        {field, "booster", "tree_method", "updater"},
        f"{chosen} can't split categories, which {field} asks for: encode them as numbers, or {instead}.",
    )


def _about_columns(settings: Hyperparameters) -> Iterator[Finding]:
    if settings.csv_weights and settings.weight_column is not None:
        yield _finding(
            {"csv_weights", "weight_column"},
            "csv_weights and weight_column both say where the weights are: keep one of them.",
        )
    if settings.csv_weights and settings.label_lower_column is not None:
        yield _finding(
            {"csv_weights", "label_lower_column"},
            "csv_weights needs the weights right after the label, and a job with label_lower_column has its "
            "bounds there: name the weights' column in weight_column instead.",
        )
    roles: dict[object, str] = {}
    for field in (
        "label_column",
        "weight_column",
        "group_column",
        "label_lower_column",
        "label_upper_column",
    ):
        column = getattr(settings, field)
        if column is None:
            continue
        if column in roles:
            yield _finding(
                {field, roles[column]},
                f"{roles[column]} and {field} are the same column {column!r}: give each its own.",
            )
        elif column in settings.drop_columns:
            yield _finding(
                {field, "drop_columns"},
                f"drop_columns holds {column!r}, which is the {field}: take it out of drop_columns "
                "(the column is no feature anyway).",
            )
        roles[column] = field


def _about_class_labels(settings: Hyperparameters) -> Iterator[Finding]:
    """Yield what is wrong with `class_labels`; their number is checked where the setting lists them all."""
    labels, kind = settings.class_labels, kind_of(settings.objective)
    if not labels:
        return
    if kind not in {"binary", "multi-class"}:
        yield _finding(
            {"class_labels", "objective"},
            f"class_labels names the classes of binary: and multi: objectives, and objective="
            f"{settings.objective} learns numbers: leave it out, or choose another objective.",
        )
    if labels == ("auto",):
        return
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice or len(labels) == 1:
        yield _finding(
            {"class_labels"},
            f"class_labels holds {f'{twice[0]!r} twice' if twice else 'one class'}: give auto, or each class "
            "once.",
        )
    elif kind == "binary" and len(labels) > 2:  # noqa: PLR2004 - two classes
        yield _finding(
            {"class_labels", "objective"},
            f"class_labels holds {len(labels)} classes, and objective={settings.objective} has two: choose "
            "multi:softprob.",
        )
    elif kind == "multi-class" and settings.num_class not in {None, len(labels)}:
        yield _finding(
            {"class_labels", "num_class"},
            f"class_labels holds {len(labels)} classes, and num_class={settings.num_class}: leave num_class "
            "out.",
        )


def _about_cross_validation(settings: Hyperparameters) -> Iterator[Finding]:
    if settings.num_cv_round is not None and settings.kfold is None:
        yield _finding(
            {"_num_cv_round", "_kfold"},
            "_num_cv_round repeats a cross validation, and there is none without _kfold: leave it out.",
        )


def _about_ports(settings: Hyperparameters) -> Iterator[Finding]:
    first, restarts = settings.tracker_port, settings.max_restarts
    of_tracker = range(first, first + restarts + 1)
    if of_tracker[-1] > PORTS[-1]:
        yield _finding(
            {"tracker_port", "max_restarts"},
            f"tracker_port takes one more port for each of {restarts} restarts, and {of_tracker[-1]} is no "
            f"port: set tracker_port to {PORTS[-1] - restarts} or less.",
        )
    owners: dict[int, str] = {DASHBOARD_PORT: "dashboard"} if settings.dashboard else {}
    for field in ("control_port", "tracker_port", "scheduler_port"):
        ports = of_tracker if field == "tracker_port" else (getattr(settings, field),)
        if taken := [port for port in ports if port in owners]:
            other = owners[taken[0]]
            is_of_restart = "tracker_port" in {field, other} and taken[0] != first
            why = " (tracker_port takes one more port for each restart)" if is_of_restart else ""
            yield _finding(
                {field, other},
                f"{other} and {field} both use port {taken[0]}{why}: set {field} to another one.",
            )
        owners = dict.fromkeys(ports, field) | owners


def _shown(numbers: tuple[float, ...]) -> str:
    return f"{numbers[0]:g}" if len(numbers) == 1 else str(list(numbers))
