"""The declared table of hyperparameters: each with its type, range, choices, default and meaning.

This is the one place that says what a job may set. Parsing, error texts, `describe` and the README's tables
are made from it.
"""
# No `from __future__ import annotations` here: pydantic reads the types at once, without evaluating texts.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from smxgb.limits import PORTS, SECONDS, Limits
from smxgb.literals import bare, integer, number, whole_number
from smxgb.settings.decoding import by_name, delimiter, items, switch, word, word_or_switch
from smxgb.settings.objectives import OBJECTIVES, Objective, kind_of

ColumnRef = str | int
"""A column by name, or by its index in the file before any is dropped; negative counts from the end."""

Sign = Literal[-1, 0, 1]

Use = Literal["xgboost", "container"]
"""Who reads a setting: XGBoost or the container."""

DASHBOARD_PORT = 8787

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_FLOAT32 = 3.4028234e38

# A setting's type says which values are allowed, how a text is decoded before they are checked, and, where
# the JSON schema that pydantic makes of it is not enough for a sentence, that sentence: "allowed".
_T = TypeVar("_T")
_WORD = BeforeValidator(word)
_WHOLE = BeforeValidator(whole_number)
_FLOAT = BeforeValidator(number)
_Text = Annotated[str, BeforeValidator(bare)]
_Switch = Annotated[bool, BeforeValidator(switch)]
_AutoOrSwitch = Annotated[Literal["auto", "true", "false"], BeforeValidator(word_or_switch)]
_List = Annotated[tuple[_T, ...], BeforeValidator(items)]

_Count = Annotated[int, Field(ge=0, le=_INT32), _WHOLE]
_Positive = Annotated[int, Field(ge=1, le=_INT32), _WHOLE]
_AtLeastTwo = Annotated[int, Field(ge=2, le=_INT32), _WHOLE]
_Verbosity = Annotated[int, Field(ge=0, le=3), _WHOLE]
_Seed = Annotated[int, Field(ge=-_INT64, le=_INT64), _WHOLE]
_Port = Annotated[int, Field(ge=PORTS[0], le=PORTS[-1]), _WHOLE]
_Seconds = Annotated[int, Field(ge=SECONDS[0], le=SECONDS[-1]), _WHOLE]
_Fraction = Annotated[float, Field(ge=0, le=1), _FLOAT]
_Share = Annotated[float, Field(gt=0, le=1), _FLOAT]
_NonNegative = Annotated[float, Field(ge=0, le=_FLOAT32), _FLOAT]
_AboveZero = Annotated[float, Field(gt=0, le=_FLOAT32), _FLOAT]
_Number = Annotated[float, Field(ge=-_FLOAT32, le=_FLOAT32), _FLOAT]
_TweediePower = Annotated[float, Field(gt=1, lt=2), _FLOAT]

_Column = Annotated[
    ColumnRef,
    BeforeValidator(integer),
    WithJsonSchema({"allowed": "a column's name, or its index (negative: from the end)"}),
]
_Delimiter = Annotated[
    str,
    Field(pattern=r"""^(auto|[^\w"'.+\-\r\n])$"""),
    BeforeValidator(delimiter),
    WithJsonSchema({"allowed": "auto, tab, or one character that is no letter, digit, quote, dot or sign"}),
]
_Sign = Annotated[Sign, _WHOLE]
_Directions = Annotated[
    _List[_Sign] | dict[str, _Sign],
    BeforeValidator(by_name),
    WithJsonSchema({"allowed": '-1, 0 or 1 for each feature, as (1,0,-1) or {"age": 1}'}),
]
_Groups = Annotated[
    _List[_List[_Column]],
    WithJsonSchema(
        {"allowed": 'groups of features by position or name, as [[0,1],[2,3]] or [["age","height"]]'}
    ),
]

_Updater = Annotated[
    Literal[
        "grow_colmaker",
        "grow_histmaker",
        "grow_quantile_histmaker",
        "refresh",
        "prune",
        "shotgun",
        "coord_descent",
    ],
    _WORD,
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
    default: object = None,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    tune: tuple[float, float] | None = None,
) -> Any:
    """Declare a parameter of XGBoost: None is absent, and leaves XGBoost its own default."""
    return _declared(default, meaning, Trait("xgboost", aliases, tune), name)


def _container(
    meaning: str,
    *,
    default: object = None,
    name: str | None = None,
    tune: tuple[float, float] | None = None,
) -> Any:
    """Declare a setting that the container reads; `...` as the default says that it must be given."""
    return _declared(default, meaning, Trait("container", tune=tune), name)


def _declared(default: object, meaning: str, trait: Trait, name: str | None) -> Any:
    return Field(default, alias=name, description=meaning, json_schema_extra={"trait": trait})  # type: ignore[dict-item]


class Hyperparameters(BaseModel):
    """The settings of one job, checked one by one.

    A parameter of XGBoost that the job does not set is None. A setting whose name can't be that of a field is
    the field's alias: `lambda_` (lambda), `kfold` (_kfold), `num_cv_round` (_num_cv_round), `tuning_metric`
    (_tuning_objective_metric).
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    num_round: _Positive = _container("Number of boosting rounds.", default=..., tune=(1, 4000))
    objective: Annotated[Objective, _WORD] = _xgboost(
        "What is learned, and from which labels.", default="reg:squarederror"
    )
    num_class: _AtLeastTwo | None = _xgboost(
        "Number of classes of a multi: objective; absent: counted from the labels."
    )
    eval_metric: _List[_Text] = _container(
        "Metrics to log each round; absent: the objective's own.", default=()
    )
    early_stopping_rounds: _Positive | None = _container(
        "Stop after so many rounds without a better value on the validation channel."
    )
    early_stopping_metric: _Text | None = _container(
        "The metric that early stopping watches; absent: the last of eval_metric."
    )
    eval_train: _Switch = _container(
        "Log the metrics on the training rows too; false saves time.", default=True
    )
    tuning_metric: _Text | None = _container(
        "Metric that automatic tuning optimises, as validation:auc.", name="_tuning_objective_metric"
    )

    booster: Annotated[Literal["gbtree", "gblinear", "dart"], _WORD] | None = _xgboost("Kind of model.")
    device: Annotated[Literal["cpu", "cuda"], _WORD] | None = _xgboost(
        "Where to train; absent: a GPU if there is one."
    )
    tree_method: Annotated[Literal["auto", "exact", "approx", "hist"], _WORD] | None = _xgboost(
        "How splits are searched; the old gpu_hist is hist with device=cuda."
    )
    nthread: _Positive | None = _xgboost(
        "Threads; absent: the processors that the job may use.", aliases=("n_jobs",)
    )
    verbosity: _Verbosity | None = _xgboost("XGBoost's own messages: 0 none, 3 all.")
    seed: _Seed | None = _xgboost("Seed of all that is drawn at random.", aliases=("random_state",))
    seed_per_iteration: _Switch | None = _xgboost("Draw anew from seed and round number; absent: true.")

    eta: _Fraction | None = _xgboost("Weight of each new tree.", aliases=("learning_rate",), tune=(0.1, 0.5))
    gamma: _NonNegative | None = _xgboost("Least gain of a split.", aliases=("min_split_loss",), tune=(0, 5))
    max_depth: _Count | None = _xgboost("Deepest level of a tree; 0: no limit.", tune=(0, 10))
    max_leaves: _Count | None = _xgboost("Most leaves of a tree; 0: no limit.")
    min_child_weight: _NonNegative | None = _xgboost("Least sum of Hessians in a leaf.", tune=(0, 120))
    max_delta_step: _NonNegative | None = _xgboost("Largest step of a leaf; 0: no limit.", tune=(0, 10))
    subsample: _Share | None = _xgboost("Share of the rows that each tree sees.")
    sampling_method: Annotated[Literal["uniform", "gradient_based"], _WORD] | None = _xgboost(
        "How subsample draws rows."
    )
    colsample_bytree: _Share | None = _xgboost("Share of the columns that each tree sees.")
    colsample_bylevel: _Share | None = _xgboost("Share of a tree's columns that each level sees.")
    colsample_bynode: _Share | None = _xgboost("Share of a level's columns that each split sees.")
    lambda_: _NonNegative | None = _xgboost(
        "L2 regularisation of the weights.", name="lambda", aliases=("reg_lambda",), tune=(0, 1000)
    )
    alpha: _NonNegative | None = _xgboost(
        "L1 regularisation of the weights.", aliases=("reg_alpha",), tune=(0, 1000)
    )
    max_bin: _AtLeastTwo | None = _xgboost("Most bins of a column's histogram.")
    num_parallel_tree: _Positive | None = _xgboost("Trees of each round (a boosted random forest).")
    grow_policy: Annotated[Literal["depthwise", "lossguide"], _WORD] | None = _xgboost(
        "Which node is split next."
    )
    scale_pos_weight: _AboveZero | None = _xgboost("Weight of the positive rows of a binary objective.")
    base_score: _List[_Number] | None = _xgboost("Prediction before the first tree; one, or one an output.")
    monotone_constraints: _Directions | None = _xgboost(
        'Direction of each feature, -1, 0 or 1: (1,0,-1) by position or {"age": 1} by name.'
    )
    interaction_constraints: _Groups | None = _xgboost(
        'Groups of features that may meet in a branch: [[0,1],[2,3]] or [["age","height"]].'
    )
    multi_strategy: Annotated[Literal["one_output_per_tree", "multi_output_tree"], _WORD] | None = _xgboost(
        "Whether each tree predicts one output or all of them."
    )
    max_cat_to_onehot: _Positive | None = _xgboost(
        "Most categories of a column that are split one against all."
    )
    max_cat_threshold: _Positive | None = _xgboost("Most categories that a split considers.")
    updater: _List[_Updater] | None = _xgboost("Steps that build a tree, in order, instead of tree_method.")
    refresh_leaf: _Switch | None = _xgboost("Whether the updater refresh renews leaf values.")
    process_type: Annotated[Literal["default", "update"], _WORD] | None = _xgboost(
        "Whether trees are built or updated."
    )

    sample_type: Annotated[Literal["uniform", "weighted"], _WORD] | None = _xgboost(
        "How dropout draws trees (dart)."
    )
    normalize_type: Annotated[Literal["tree", "forest"], _WORD] | None = _xgboost(
        "Weight of new trees after dropout (dart)."
    )
    rate_drop: _Fraction | None = _xgboost("Share of the trees that dropout leaves out (dart).")
    one_drop: _Switch | None = _xgboost("Whether dropout leaves out at least one tree (dart).")
    skip_drop: _Fraction | None = _xgboost("Probability of a round without dropout (dart).")

    tweedie_variance_power: _TweediePower | None = _xgboost("Variance power of reg:tweedie.")
    huber_slope: _AboveZero | None = _xgboost("Where reg:pseudohubererror turns linear.")
    quantile_alpha: _List[_Fraction] | None = _xgboost("Quantiles of reg:quantileerror, ascending.")
    expectile_alpha: _List[_Fraction] | None = _xgboost("Expectiles of reg:expectileerror, ascending.")
    aft_loss_distribution: Annotated[Literal["normal", "logistic", "extreme"], _WORD] | None = _xgboost(
        "Noise of survival:aft."
    )
    aft_loss_distribution_scale: _AboveZero | None = _xgboost("Scale of survival:aft's noise.")
    lambdarank_pair_method: Annotated[Literal["topk", "mean"], _WORD] | None = _xgboost(
        "How ranking pairs rows."
    )
    lambdarank_num_pair_per_sample: _Positive | None = _xgboost(
        "Pairs of a row (mean), or ranks looked at (topk)."
    )
    lambdarank_normalization: _Switch | None = _xgboost("Whether ranking normalises its gradients.")
    lambdarank_score_normalization: _Switch | None = _xgboost(
        "Whether ranking normalises by score differences."
    )
    lambdarank_unbiased: _Switch | None = _xgboost("Whether ranking corrects for position bias.")
    lambdarank_bias_norm: _NonNegative | None = _xgboost("Norm of the position bias.")
    ndcg_exp_gain: _Switch | None = _xgboost("Whether ndcg's gain is 2^label - 1 instead of the label.")

    csv_weights: _Switch = _container("CSV column 1, right after the label, holds weights.", default=False)
    label_column: _Column | None = _container("Column of the label; absent: the first one left.")
    weight_column: _Column | None = _container("Column of the rows' weights.")
    group_column: _Column | None = _container("Column of the query that a row belongs to, for ranking.")
    label_lower_column: _Column | None = _container("Column of survival:aft's lower bound.")
    label_upper_column: _Column | None = _container("Column of survival:aft's upper bound.")
    drop_columns: _List[_Column] = _container("Columns to leave out, by name or index.", default=())
    categorical_columns: _List[_Column] = _container(
        "Columns of CSV or Parquet that hold categories: words or whole numbers.", default=()
    )
    enable_categorical: _Switch = _container(
        "Read dictionary columns of Parquet as categories.", default=False
    )
    csv_header: _AutoOrSwitch = _container("Whether CSV files begin with names.", default="auto")
    csv_delimiter: _Delimiter = _container("The character between CSV values, or tab.", default="auto")
    invalid_label: Annotated[Literal["error", "drop"], _WORD] = _container(
        "What to do with a row whose label is no number.", default="error"
    )
    infinity: Annotated[Literal["error", "missing"], _WORD] = _container(
        "What to do with an infinite value.", default="error"
    )
    libsvm_indexing: Annotated[Literal["auto", "0", "1"], _WORD] = _container(
        "Index of the first feature in libsvm files; auto: 0 if any row has it, else 1.", default="auto"
    )

    kfold: _AtLeastTwo | None = _container(
        "Folds of a cross validation (refused in this version).", name="_kfold"
    )
    num_cv_round: _Positive | None = _container(
        "Repeats of the cross validation (refused in this version).", name="_num_cv_round"
    )
    use_dask_gpu_training: _Switch = _container("Train with Dask on all GPUs.", default=False)
    save_model_on_termination: _Switch = _container(
        "Keep a stopped job's model (no effect yet).", default=False
    )
    workers_per_host: _Positive | None = _container(
        "Workers of a host, with use_dask_gpu_training or GPUs; absent: 1, or one a GPU."
    )
    spool_dir: _Text | None = _container(
        "Folder for parsed batches; absent: the volume with most free space."
    )
    collective_timeout: _Seconds = _container(
        "Seconds that an operation of all workers may take.", default=1800
    )
    start_timeout: _Seconds = _container(
        "Seconds within which all hosts must be there.", default=Limits.start_timeout
    )
    silence_timeout: _Seconds = _container(
        "Seconds without a sign of life before a host counts as lost.", default=Limits.silence_timeout
    )
    control_port: _Port = _container("Port of the hosts' control channel.", default=Limits.control_port)
    tracker_port: _Port = _container(
        "Port of XGBoost's tracker, by which the workers of several hosts find each other.", default=9091
    )
    scheduler_port: _Port = _container("Port of Dask's scheduler, with several hosts.", default=8786)
    dashboard: _Switch = _container(
        f"Run Dask's dashboard on the first host, port {DASHBOARD_PORT}.", default=False
    )

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
