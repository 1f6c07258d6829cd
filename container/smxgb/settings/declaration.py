"""The declared table of hyperparameters: each with its type, range, choices, default and meaning.

This is the one place that says what a job may set. Parsing, error texts, `describe` and the README's tables
are made from it.
"""
# No `from __future__ import annotations` here: pydantic reads the types at once, without evaluating texts.

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from smxgb.limits import Limits
from smxgb.settings.objectives import OBJECTIVES, Objective, kind_of

ColumnRef = str | int
"""A column by name, or by its index in the file before any is dropped; negative counts from the end."""

Sign = Literal[-1, 0, 1]

Use = Literal["xgboost", "container", "later"]
"""Who reads a setting: XGBoost, the container, or nobody yet (then only its default is accepted)."""

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_FLOAT32 = 3.4028234e38

_Count = Annotated[int, Field(ge=0, le=_INT32)]
_Positive = Annotated[int, Field(ge=1, le=_INT32)]
DASHBOARD_PORT = 8787
_Port = Annotated[int, Field(ge=1024, le=65535)]
_Seconds = Annotated[int, Field(ge=1, le=_INT32)]
_Seed = Annotated[int, Field(ge=-_INT64, le=_INT64)]
_Fraction = Annotated[float, Field(ge=0, le=1)]
_Share = Annotated[float, Field(gt=0, le=1)]
_NonNegative = Annotated[float, Field(ge=0, le=_FLOAT32)]
_AboveZero = Annotated[float, Field(gt=0, le=_FLOAT32)]
_Number = Annotated[float, Field(ge=-_FLOAT32, le=_FLOAT32)]
_Delimiter = Annotated[str, Field(pattern=r"""^(auto|[^\w"'.+\-\r\n])$""")]

_Updater = Literal[
    "grow_colmaker",
    "grow_histmaker",
    "grow_quantile_histmaker",
    "refresh",
    "prune",
    "shotgun",
    "coord_descent",
]

Method = Literal["exact", "approx", "hist"]
_OF_HIST = frozenset({"grow_quantile_histmaker", "prune"})
"""`prune` looks at no rows."""


@dataclass(frozen=True)
class Trait:
    """What the table says of a setting beside its type: who reads it, other names, the range for tuning."""

    use: Use
    aliases: tuple[str, ...] = ()
    tune: tuple[float, float] | None = None


def _xgboost(
    meaning: str,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    tune: tuple[float, float] | None = None,
    default: object = None,
) -> Any:
    """Declare a parameter of XGBoost: None is absent, and leaves XGBoost its own default."""
    return _declared(default, meaning, Trait("xgboost", aliases, tune), name)


def _container(
    default: object, meaning: str, *, name: str | None = None, tune: tuple[float, float] | None = None
) -> Any:
    """Declare a setting that the container reads; `...` as the default says that it must be given."""
    return _declared(default, meaning, Trait("container", tune=tune), name)


def _later(default: object, meaning: str) -> Any:
    """Declare a setting that only has its default for now."""
    return _declared(default, meaning, Trait("later"), None)


def _declared(default: object, meaning: str, trait: Trait, name: str | None) -> Any:
    return Field(default, alias=name, description=meaning, json_schema_extra={"trait": trait})  # type: ignore[dict-item]


class Hyperparameters(BaseModel):
    """The settings of one job, checked one by one.

    A parameter of XGBoost that the job does not set is None. Fields whose setting's name is no Python name
    have it as their alias: `lambda_` (lambda), `kfold` (_kfold), `num_cv_round` (_num_cv_round),
    `tuning_metric` (_tuning_objective_metric).
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    num_round: _Positive = _container(..., "Number of boosting rounds.", tune=(1, 4000))
    objective: Objective = _xgboost("What is learned, and from which labels.", default="reg:squarederror")
    num_class: Annotated[int, Field(ge=2, le=_INT32)] | None = _xgboost(
        "Number of classes of a multi: objective; absent: counted from the labels."
    )
    eval_metric: tuple[str, ...] = _container((), "Metrics to log each round; absent: the objective's own.")
    early_stopping_rounds: _Positive | None = _container(
        None, "Stop after so many rounds without a better value on the validation channel."
    )
    early_stopping_metric: str | None = _container(
        None, "The metric that early stopping watches; absent: the last of eval_metric."
    )
    eval_train: bool = _container(True, "Log the metrics on the training rows too; false saves time.")  # noqa: FBT003
    tuning_metric: str | None = _container(
        None, "Metric that automatic tuning optimises, as validation:auc.", name="_tuning_objective_metric"
    )

    booster: Literal["gbtree", "gblinear", "dart"] | None = _xgboost("Kind of model.")
    device: Literal["cpu", "cuda"] | None = _xgboost("Where to train; absent: a GPU if there is one.")
    tree_method: Literal["auto", "exact", "approx", "hist"] | None = _xgboost(
        "How splits are searched; the old gpu_hist is hist with device=cuda."
    )
    nthread: _Positive | None = _xgboost(
        "Threads; absent: the processors that the job may use.", aliases=("n_jobs",)
    )
    verbosity: Annotated[int, Field(ge=0, le=3)] | None = _xgboost("XGBoost's own messages: 0 none, 3 all.")
    seed: _Seed | None = _xgboost("Seed of all that is drawn at random.", aliases=("random_state",))
    seed_per_iteration: bool | None = _xgboost("Draw anew from seed and round number; absent: true.")

    eta: _Fraction | None = _xgboost("Weight of each new tree.", aliases=("learning_rate",), tune=(0.1, 0.5))
    gamma: _NonNegative | None = _xgboost("Least gain of a split.", aliases=("min_split_loss",), tune=(0, 5))
    max_depth: _Count | None = _xgboost("Deepest level of a tree; 0: no limit.", tune=(0, 10))
    max_leaves: _Count | None = _xgboost("Most leaves of a tree; 0: no limit.")
    min_child_weight: _NonNegative | None = _xgboost("Least sum of Hessians in a leaf.", tune=(0, 120))
    max_delta_step: _NonNegative | None = _xgboost("Largest step of a leaf; 0: no limit.", tune=(0, 10))
    subsample: _Share | None = _xgboost("Share of the rows that each tree sees.")
    sampling_method: Literal["uniform", "gradient_based"] | None = _xgboost("How subsample draws rows.")
    colsample_bytree: _Share | None = _xgboost("Share of the columns that each tree sees.")
    colsample_bylevel: _Share | None = _xgboost("Share of a tree's columns that each level sees.")
    colsample_bynode: _Share | None = _xgboost("Share of a level's columns that each split sees.")
    lambda_: _NonNegative | None = _xgboost(
        "L2 regularisation of the weights.", name="lambda", aliases=("reg_lambda",), tune=(0, 1000)
    )
    alpha: _NonNegative | None = _xgboost(
        "L1 regularisation of the weights.", aliases=("reg_alpha",), tune=(0, 1000)
    )
    max_bin: Annotated[int, Field(ge=2, le=_INT32)] | None = _xgboost("Most bins of a column's histogram.")
    num_parallel_tree: _Positive | None = _xgboost("Trees of each round (a boosted random forest).")
    grow_policy: Literal["depthwise", "lossguide"] | None = _xgboost("Which node is split next.")
    scale_pos_weight: _AboveZero | None = _xgboost("Weight of the positive rows of a binary objective.")
    base_score: tuple[_Number, ...] | None = _xgboost(
        "Prediction before the first tree; one, or one an output."
    )
    monotone_constraints: tuple[Sign, ...] | dict[str, Sign] | None = _xgboost(
        'Direction of each feature, -1, 0 or 1: (1,0,-1) by position or {"age": 1} by name.'
    )
    interaction_constraints: tuple[tuple[ColumnRef, ...], ...] | None = _xgboost(
        'Groups of features that may meet in a branch: [[0,1],[2,3]] or [["age","height"]].'
    )
    multi_strategy: Literal["one_output_per_tree", "multi_output_tree"] | None = _xgboost(
        "Whether each tree predicts one output or all of them."
    )
    max_cat_to_onehot: _Positive | None = _xgboost(
        "Most categories of a column that are split one against all."
    )
    max_cat_threshold: _Positive | None = _xgboost("Most categories that a split considers.")
    updater: tuple[_Updater, ...] | None = _xgboost(
        "Steps that build a tree, in order, instead of tree_method."
    )
    refresh_leaf: bool | None = _xgboost("Whether the updater refresh renews leaf values.")
    process_type: Literal["default", "update"] | None = _xgboost("Whether trees are built or updated.")

    sample_type: Literal["uniform", "weighted"] | None = _xgboost("How dropout draws trees (dart).")
    normalize_type: Literal["tree", "forest"] | None = _xgboost("Weight of new trees after dropout (dart).")
    rate_drop: _Fraction | None = _xgboost("Share of the trees that dropout leaves out (dart).")
    one_drop: bool | None = _xgboost("Whether dropout leaves out at least one tree (dart).")
    skip_drop: _Fraction | None = _xgboost("Probability of a round without dropout (dart).")

    tweedie_variance_power: Annotated[float, Field(gt=1, lt=2)] | None = _xgboost(
        "Variance power of reg:tweedie."
    )
    huber_slope: _AboveZero | None = _xgboost("Where reg:pseudohubererror turns linear.")
    quantile_alpha: tuple[_Fraction, ...] | None = _xgboost("Quantiles of reg:quantileerror, ascending.")
    expectile_alpha: tuple[_Fraction, ...] | None = _xgboost("Expectiles of reg:expectileerror, ascending.")
    aft_loss_distribution: Literal["normal", "logistic", "extreme"] | None = _xgboost(
        "Noise of survival:aft."
    )
    aft_loss_distribution_scale: _AboveZero | None = _xgboost("Scale of survival:aft's noise.")
    lambdarank_pair_method: Literal["topk", "mean"] | None = _xgboost("How ranking pairs rows.")
    lambdarank_num_pair_per_sample: _Positive | None = _xgboost(
        "Pairs of a row (mean), or ranks looked at (topk)."
    )
    lambdarank_normalization: bool | None = _xgboost("Whether ranking normalises its gradients.")
    lambdarank_score_normalization: bool | None = _xgboost("Whether ranking normalises by score differences.")
    lambdarank_unbiased: bool | None = _xgboost("Whether ranking corrects for position bias.")
    lambdarank_bias_norm: _NonNegative | None = _xgboost("Norm of the position bias.")
    ndcg_exp_gain: bool | None = _xgboost("Whether ndcg's gain is 2^label - 1 instead of the label.")

    csv_weights: bool = _container(False, "CSV column 1, right after the label, holds weights.")  # noqa: FBT003
    label_column: ColumnRef | None = _container(None, "Column of the label; absent: the first one left.")
    weight_column: ColumnRef | None = _container(None, "Column of the rows' weights.")
    group_column: ColumnRef | None = _container(
        None, "Column of the query that a row belongs to, for ranking."
    )
    label_lower_column: ColumnRef | None = _container(None, "Column of survival:aft's lower bound.")
    label_upper_column: ColumnRef | None = _container(None, "Column of survival:aft's upper bound.")
    drop_columns: tuple[ColumnRef, ...] = _container((), "Columns to leave out, by name or index.")
    categorical_columns: tuple[ColumnRef, ...] = _container(
        (), "Columns of CSV or Parquet that hold categories: words or whole numbers."
    )
    enable_categorical: bool = _container(False, "Read dictionary columns of Parquet as categories.")  # noqa: FBT003
    csv_header: Literal["auto", "true", "false"] = _container("auto", "Whether CSV files begin with names.")
    csv_delimiter: _Delimiter = _container("auto", "The character between CSV values, or tab.")
    invalid_label: Literal["error", "drop"] = _container(
        "error", "What to do with a row whose label is no number."
    )
    infinity: Literal["error", "missing"] = _container("error", "What to do with an infinite value.")
    libsvm_indexing: Literal["auto", "0", "1"] = _container(
        "auto", "Index of the first feature in libsvm files; auto: 0 if any row has it, else 1."
    )

    kfold: Annotated[int, Field(ge=2, le=_INT32)] | None = _container(
        None, "Folds of a cross validation (refused in this version).", name="_kfold"
    )
    num_cv_round: _Positive | None = _container(
        None, "Repeats of the cross validation (refused in this version).", name="_num_cv_round"
    )
    use_dask_gpu_training: bool = _container(False, "Train with Dask on all GPUs.")  # noqa: FBT003
    save_model_on_termination: bool = _container(False, "Keep a stopped job's model (no effect yet).")  # noqa: FBT003
    report: bool = _later(True, "Write a report beside the model.")  # noqa: FBT003
    shap_rows: _Count = _later(0, "Rows to explain with SHAP values.")
    sketch_rows: _Count | None = _later(None, "Rows from which bins are cut; 0: all; absent: by size.")
    workers_per_host: _Positive | None = _container(
        None, "Workers of a host, with use_dask_gpu_training or GPUs; absent: 1, or one a GPU."
    )
    spool_dir: str | None = _container(
        None, "Folder for parsed batches; absent: the volume with most free space."
    )
    checkpoint_interval: _Positive = _later(1, "Rounds between checkpoints.")
    checkpoint_keep: _Positive = _later(5, "Checkpoints that are kept.")
    checkpoint_mismatch: Literal["error", "restart"] = _later(
        "error", "What to do with another job's checkpoint."
    )
    collective_timeout: _Seconds = _container(1800, "Seconds that an operation of all workers may take.")
    start_timeout: _Seconds = _container(
        Limits.start_timeout, "Seconds within which all hosts must be there."
    )
    silence_timeout: _Seconds = _container(
        Limits.silence_timeout, "Seconds without a sign of life before a host counts as lost."
    )
    control_port: _Port = _container(Limits.control_port, "Port of the hosts' control channel.")
    tracker_port: _Port = _container(
        9091, "Port of XGBoost's tracker, by which the workers of several hosts find each other."
    )
    scheduler_port: _Port = _container(8786, "Port of Dask's scheduler, with several hosts.")
    dashboard: bool = _container(False, f"Run Dask's dashboard on the first host, port {DASHBOARD_PORT}.")  # noqa: FBT003

    @property
    def method(self) -> Method:
        """The tree method in effect: updaters take the place of `tree_method`, and each belongs to one."""
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


def trait_of(field: str) -> Trait:
    """Return the trait of a field of `Hyperparameters`."""
    extra = Hyperparameters.model_fields[field].json_schema_extra
    return extra["trait"]  # type: ignore[index,return-value]


def name_of(field: str) -> str:
    """Return the name under which a job sets a field."""
    return Hyperparameters.model_fields[field].alias or field


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
