"""The declared table of hyperparameters: each with its type, range, choices, default and meaning.

This is the one place that says what a job may set. Parsing, error texts, `describe` and the README's tables
are made from it.
"""
# No `from __future__ import annotations` here: pydantic reads the types at once, without evaluating texts.

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from smxgb.limits import Limits
from smxgb.settings.objectives import OBJECTIVES, Objective, kind_of
from smxgb.settings.value_types import (
    WORD,
    AboveZero,
    AtLeastTwo,
    AutoOrSwitch,
    ClassLabel,
    Column,
    Count,
    Delimiter,
    Directions,
    Fraction,
    Groups,
    ListOf,
    NonNegative,
    Number,
    Port,
    Positive,
    Restarts,
    Seconds,
    Seed,
    Share,
    Switch,
    Text,
    TweediePower,
    Updater,
    Verbosity,
)

Use = Literal["xgboost", "container"]
"""Who reads a setting: XGBoost or the container."""

DASHBOARD_PORT = 8787

Method = Literal["exact", "approx", "hist"]
_OF_HIST = frozenset({"grow_quantile_histmaker", "prune"})
"""`prune` looks at no rows."""


@dataclass(frozen=True)
class Trait:
    """What the table says of a setting beside its type.

    `use` says who reads it, `aliases` are its other names, `tune` is the range for automatic tuning. `common`
    says that most jobs set it, so that the README shows it first; `varies`, that XGBoost has no fixed default
    of it, since the data, the machine or other settings decide; `free`, that it does not shape the model, so
    that a job may go on from a checkpoint with another value.
    """

    use: Use
    aliases: tuple[str, ...] = ()
    tune: tuple[float, float] | None = None
    common: bool = False
    varies: bool = False
    free: bool = False


def _declared(use: Use, meaning: str, *, default: object = None, name: str | None = None, **more: Any) -> Any:
    """Declare a setting, with `more` of its trait; `...` as the default says that a job must give it."""
    trait = Trait(use, **more)
    return Field(default, alias=name, description=meaning, json_schema_extra={"trait": trait})  # type: ignore[dict-item]


_xgboost = partial(_declared, "xgboost")
"""Declares a parameter of XGBoost: where it is None, XGBoost gets no value and has its own default."""

_container = partial(_declared, "container")
"""Declares a setting that the container reads."""


class Hyperparameters(BaseModel):
    """The settings of one job, checked one by one.

    A parameter of XGBoost that the job does not set is None. A setting whose name can't be that of a field is
    the field's alias: `lambda_` (lambda), `kfold` (_kfold), `num_cv_round` (_num_cv_round), `tuning_metric`
    (_tuning_objective_metric).
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    num_round: Positive = _container(
        "Number of boosting rounds.", default=..., tune=(1, 4000), common=True, free=True
    )
    objective: Annotated[Objective, WORD] = _xgboost(
        "What is learned, and from which labels.", default="reg:squarederror", common=True
    )
    num_class: AtLeastTwo | None = _xgboost(
        "Number of classes of a multi: objective; absent: counted from the labels.", varies=True
    )
    eval_metric: ListOf[Text] = _container(
        "Metrics to log each round; absent: the objective's own.", default=(), common=True, free=True
    )
    early_stopping_rounds: Positive | None = _container(
        "Stop after so many rounds without a better value on the validation channel, or on "
        "train if there is none.",
        common=True,
    )
    early_stopping_metric: Text | None = _container(
        "The metric that early stopping watches; absent: the last of eval_metric.", free=True
    )
    eval_train: Switch = _container(
        "Log the metrics on the training rows too; false saves time.", default=True, free=True
    )
    tuning_metric: Text | None = _container(
        "Metric that automatic tuning optimises, as validation:auc.",
        name="_tuning_objective_metric",
        free=True,
    )

    booster: Annotated[Literal["gbtree", "gblinear", "dart"], WORD] | None = _xgboost("Kind of model.")
    device: Annotated[Literal["cpu", "cuda"], WORD] | None = _xgboost(
        "Where to train; absent: a GPU if there is one.", varies=True, free=True
    )
    tree_method: Annotated[Literal["auto", "exact", "approx", "hist"], WORD] | None = _xgboost(
        "How splits are searched; the old gpu_hist is hist with device=cuda."
    )
    nthread: Positive | None = _xgboost(
        "Threads; absent: the processors that the job may use.", aliases=("n_jobs",), varies=True, free=True
    )
    verbosity: Verbosity | None = _xgboost("XGBoost's own messages: 0 none, 3 all.", free=True)
    seed: Seed | None = _xgboost(
        "Seed of all that is drawn at random.", aliases=("random_state",), common=True
    )
    seed_per_iteration: Switch | None = _xgboost(
        "Draw anew from seed and round number; absent: true.", varies=True
    )

    eta: Fraction | None = _xgboost(
        "Weight of each new tree.", aliases=("learning_rate",), tune=(0.1, 0.5), common=True
    )
    gamma: NonNegative | None = _xgboost("Least gain of a split.", aliases=("min_split_loss",), tune=(0, 5))
    max_depth: Count | None = _xgboost("Deepest level of a tree; 0: no limit.", tune=(0, 10), common=True)
    max_leaves: Count | None = _xgboost("Most leaves of a tree; 0: no limit.")
    min_child_weight: NonNegative | None = _xgboost(
        "Least sum of Hessians in a leaf.", tune=(0, 120), common=True
    )
    max_delta_step: NonNegative | None = _xgboost("Largest step of a leaf; 0: no limit.", tune=(0, 10))
    subsample: Share | None = _xgboost("Share of the rows that each tree sees.", common=True)
    sampling_method: Annotated[Literal["uniform", "gradient_based"], WORD] | None = _xgboost(
        "How subsample draws rows."
    )
    colsample_bytree: Share | None = _xgboost("Share of the columns that each tree sees.", common=True)
    colsample_bylevel: Share | None = _xgboost("Share of a tree's columns that each level sees.")
    colsample_bynode: Share | None = _xgboost("Share of a level's columns that each split sees.")
    lambda_: NonNegative | None = _xgboost(
        "L2 regularisation of the weights.", name="lambda", aliases=("reg_lambda",), tune=(0, 1000)
    )
    alpha: NonNegative | None = _xgboost(
        "L1 regularisation of the weights.", aliases=("reg_alpha",), tune=(0, 1000)
    )
    max_bin: AtLeastTwo | None = _xgboost("Most bins of a column's histogram.")
    num_parallel_tree: Positive | None = _xgboost("Trees of each round (a boosted random forest).")
    grow_policy: Annotated[Literal["depthwise", "lossguide"], WORD] | None = _xgboost(
        "Which node is split next."
    )
    scale_pos_weight: AboveZero | None = _xgboost("Weight of the positive rows of a binary objective.")
    base_score: ListOf[Number] | None = _xgboost(
        "Prediction before the first tree; one, or one an output.", varies=True
    )
    monotone_constraints: Directions | None = _xgboost(
        'Direction of each feature, -1, 0 or 1: (1,0,-1) by position or {"age": 1} by name.', varies=True
    )
    interaction_constraints: Groups | None = _xgboost(
        'Groups of features that may meet in a branch: [[0,1],[2,3]] or [["age","height"]].', varies=True
    )
    multi_strategy: Annotated[Literal["one_output_per_tree", "multi_output_tree"], WORD] | None = _xgboost(
        "Whether each tree predicts one output or all of them."
    )
    max_cat_to_onehot: Positive | None = _xgboost(
        "Most categories of a column that are split one against all."
    )
    max_cat_threshold: Positive | None = _xgboost("Most categories that a split considers.")
    updater: ListOf[Updater] | None = _xgboost(
        "Steps that build a tree, in order, instead of tree_method.", varies=True
    )
    refresh_leaf: Switch | None = _xgboost("Whether the updater refresh renews leaf values.")
    process_type: Annotated[Literal["default", "update"], WORD] | None = _xgboost(
        "Whether trees are built or updated."
    )

    sample_type: Annotated[Literal["uniform", "weighted"], WORD] | None = _xgboost(
        "How dropout draws trees (dart)."
    )
    normalize_type: Annotated[Literal["tree", "forest"], WORD] | None = _xgboost(
        "Weight of new trees after dropout (dart)."
    )
    rate_drop: Fraction | None = _xgboost("Share of the trees that dropout leaves out (dart).")
    one_drop: Switch | None = _xgboost("Whether dropout leaves out at least one tree (dart).")
    skip_drop: Fraction | None = _xgboost("Probability of a round without dropout (dart).")

    tweedie_variance_power: TweediePower | None = _xgboost("Variance power of reg:tweedie.")
    huber_slope: AboveZero | None = _xgboost("Where reg:pseudohubererror turns linear.")
    quantile_alpha: ListOf[Fraction] | None = _xgboost(
        "Quantiles of reg:quantileerror, ascending.", varies=True
    )
    expectile_alpha: ListOf[Fraction] | None = _xgboost(
        "Expectiles of reg:expectileerror, ascending.", varies=True
    )
    aft_loss_distribution: Annotated[Literal["normal", "logistic", "extreme"], WORD] | None = _xgboost(
        "Noise of survival:aft."
    )
    aft_loss_distribution_scale: AboveZero | None = _xgboost("Scale of survival:aft's noise.")
    lambdarank_pair_method: Annotated[Literal["topk", "mean"], WORD] | None = _xgboost(
        "How ranking pairs rows."
    )
    lambdarank_num_pair_per_sample: Positive | None = _xgboost(
        "Pairs of a row (mean), or ranks looked at (topk).", varies=True
    )
    lambdarank_normalization: Switch | None = _xgboost("Whether ranking normalises its gradients.")
    lambdarank_score_normalization: Switch | None = _xgboost(
        "Whether ranking normalises by score differences."
    )
    lambdarank_unbiased: Switch | None = _xgboost("Whether ranking corrects for position bias.")
    lambdarank_bias_norm: NonNegative | None = _xgboost("Norm of the position bias.")
    ndcg_exp_gain: Switch | None = _xgboost("Whether ndcg's gain is 2^label - 1 instead of the label.")

    csv_weights: Switch = _container("CSV column 1, right after the label, holds weights.", default=False)
    label_column: Column | None = _container("Column of the label; absent: the first one left.", common=True)
    weight_column: Column | None = _container("Column of the rows' weights.")
    group_column: Column | None = _container("Column of the query that a row belongs to, for ranking.")
    label_lower_column: Column | None = _container("Column of survival:aft's lower bound.")
    label_upper_column: Column | None = _container("Column of survival:aft's upper bound.")
    drop_columns: ListOf[Column] = _container("Columns to leave out, by name or index.", default=())
    categorical_columns: ListOf[Column] = _container(
        "Columns of CSV or Parquet that hold categories: words or whole numbers.", default=()
    )
    enable_categorical: Switch = _container(
        "Read dictionary columns of Parquet as categories.", default=False
    )
    csv_header: AutoOrSwitch = _container("Whether CSV files begin with names.", default="auto")
    csv_delimiter: Delimiter = _container("The character between CSV values, or tab.", default="auto")
    invalid_label: Annotated[Literal["error", "drop"], WORD] = _container(
        "What to do with a row whose label is no number.", default="error"
    )
    class_labels: ListOf[ClassLabel] = _container(
        "Labels that are words, or do not begin at 0: auto (those of train, sorted), or all in the order of "
        "their codes; absent: labels are numbers.",
        default=(),
    )
    infinity: Annotated[Literal["error", "missing"], WORD] = _container(
        "What to do with an infinite value.", default="error"
    )
    libsvm_indexing: Annotated[Literal["auto", "0", "1"], WORD] = _container(
        "Index of the first feature in libsvm files; auto: 0 if any row has it, else 1.", default="auto"
    )

    kfold: AtLeastTwo | None = _container(
        "Folds of a cross validation (refused in this version).", name="_kfold"
    )
    num_cv_round: Positive | None = _container(
        "Repeats of the cross validation (refused in this version).", name="_num_cv_round"
    )
    use_dask_gpu_training: Switch = _container("Train with Dask on all GPUs.", default=False, free=True)
    save_model_on_termination: Switch = _container(
        "Keep the model of a job that is stopped; false: only its checkpoint.", default=True, free=True
    )
    checkpoint_interval: Positive | None = _container(
        "Rounds between two checkpoints; absent: by time, at least every 5 minutes.",
        free=True,
    )
    checkpoint_keep: Positive = _container("Checkpoints to keep, the newest.", default=5, free=True)
    checkpoint_mismatch: Annotated[Literal["error", "restart"], WORD] = _container(
        "What to do with a checkpoint of a job that differs: fail, or begin anew.", default="error", free=True
    )
    max_restarts: Restarts = _container(
        "Times that a job's workers are started again from the last round, when one has died.",
        default=Limits.max_restarts,
        free=True,
    )
    workers_per_host: Positive | None = _container(
        "Workers of a host, with use_dask_gpu_training or GPUs: at most one a processor, or a GPU; absent: "
        "1, or one a GPU.",
        free=True,
    )
    sketch_rows: Count = _container(
        "Rows that a column's quantile cuts are taken from, where there are four times as many; 0: all rows.",
        default=0,
    )
    spool_dir: Text | None = _container(
        "Folder for parsed batches; absent: the volume with most free space.", free=True
    )
    collective_timeout: Seconds = _container(
        "Seconds that an operation of all workers may take.", default=1800, free=True
    )
    start_timeout: Seconds = _container(
        "Seconds within which all hosts must be there.", default=Limits.start_timeout, free=True
    )
    silence_timeout: Seconds = _container(
        "Seconds without a sign of life before a host counts as lost.",
        default=Limits.silence_timeout,
        free=True,
    )
    stop_timeout: Seconds = _container(
        "Seconds for the present round and for saving, once the job is told to stop.",
        default=Limits.stop_timeout,
        free=True,
    )
    control_port: Port = _container(
        "Port of the hosts' control channel.", default=Limits.control_port, free=True
    )
    tracker_port: Port = _container(
        "Port of XGBoost's tracker, for the workers of several hosts; restart n takes the n-th after it.",
        default=Limits.tracker_port,
        free=True,
    )
    scheduler_port: Port = _container(
        "Port of Dask's scheduler, with several hosts.", default=8786, free=True
    )
    dashboard: Switch = _container(
        f"Run Dask's dashboard on the first host, port {DASHBOARD_PORT}.", default=False, free=True
    )

    @property
    def method(self) -> Method:
        """The tree method in effect: updaters take the place of `tree_method`, and each belongs to one."""
        if self.process_type == "update":
            return "approx"  # refresh takes a plain matrix
        if self.updater:
            if "grow_colmaker" in self.updater:
                return "exact"
            return "hist" if set(self.updater) <= _OF_HIST else "approx"
        return "hist" if self.tree_method is None or self.tree_method == "auto" else self.tree_method

    @property
    def method_as_set(self) -> str:
        """The setting that `method` comes from, as a job gives it."""
        return f"updater={','.join(self.updater)}" if self.updater else f"tree_method={self.tree_method}"

    @property
    def to_hist(self) -> str:
        """What to do for the tree method hist, as the end of a sentence."""
        return "leave updater out" if self.updater else "use tree_method=hist"

    @property
    def outputs(self) -> int | None:
        """How many numbers the model predicts for a row; None if the classes are to be counted."""
        if kind_of(self.objective) == "multi-class":
            return self.num_class
        alphas = OBJECTIVES[self.objective].alphas
        return len(getattr(self, alphas) or (0,)) if alphas else 1


TRAITS: Mapping[str, Trait] = {
    info.alias or field: cast("dict[str, Trait]", info.json_schema_extra)["trait"]
    for field, info in Hyperparameters.model_fields.items()
}
"""Each setting by the name under which a job gives it."""

NAMES: Mapping[str, str] = {given: name for name, trait in TRAITS.items() for given in (name, *trait.aliases)}
"""The setting that each name stands for, other names included."""

OBSOLETE = {
    "predictor": "XGBoost chooses it",
    "sketch_eps": "max_bin took its place",
    "dsplit": "rows are split among the hosts as their files are",
    "lambda_bias": "XGBoost removed it",
    "deterministic_histogram": "histograms always are",
    "prob_buffer_row": "XGBoost removed it",
    "single_precision_histogram": "XGBoost removed it",
    "silent": "verbosity took its place",
    "gpu_id": "device took its place",
    "n_gpus": "device took its place",
}
"""Names that XGBoost gave up and old jobs still set, with the reason: accepted, with a line in the log."""
