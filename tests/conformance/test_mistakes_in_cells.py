"""Bad values and labels: what SageMaker shows as the reason. One of each kind is a whole job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.mistakes import COLUMNS, NAMED, Mistake, assert_fails, table
from tests.opt_ml import parquet

if TYPE_CHECKING:
    from pathlib import Path


FIRST = " The label is column 0, the first one; if that is the wrong column, set label_column."

CELLS = {
    "a word in a cell": Mistake(
        "UserError: train/data.csv, line 2, column 1: 'old' is not a number. A missing value is an "
        "empty cell, NA, NaN, null, None or N/A. Encode "
        "other text as numbers, name its column in categorical_columns, or leave it out with drop_columns.",
        train=b"1,2,3\n0,old,4\n1,2,5\n",
    ),
    "words in a cell of a named column": Mistake(
        "UserError: 2 mistakes. 1. train/data.csv, line 6, column 1 ('age'): 'red' is not a number "
        "(so too line 7). A missing value is an empty cell, NA, NaN, null, None or N/A. Encode "
        "other text as numbers, name its column in categorical_columns, or leave it out with drop_columns.",
        train=NAMED + b"1,red,3\n0,green,4\n1,2,blue\n",
        whole=True,
    ),
    "a vector in a cell": Mistake(
        "UserError: train/data.csv, line 2, column 1: '(262144,[4660],[1.0])' is not a number. A "
        "missing value is an empty cell, NA, NaN, null, None or N/A. Encode "
        "other text as numbers, name its column in categorical_columns, or leave it out with drop_columns.",
        train=b'1,2,3\n0,"(262144,[4660],[1.0])",4\n',
    ),
    "a short record": Mistake(
        "UserError: train/data.csv, line 2: the record has 2 values, the file's first one has 3. "
        "Every record needs as many values as the first.",
        train=b"1,2,3\n0,2\n1,2,5\n",
    ),
    "a long record": Mistake(
        "UserError: train/data.csv, line 3: the record has 4 values, the file's first one has 3. "
        "Every record needs as many values as the first.",
        train=b"1,2,3\n0,2,4\n1,2,5,6\n",
    ),
    "an empty label": Mistake(
        "UserError: train/data.csv, line 2, column 0: the label is empty: a finite number is needed."
        " Correct these rows (words as classes: class_labels=auto), leave them out with invalid_label=drop, "
        "or "
        "name another column with label_column.",
        train=b"1,2,3\n,2,4\n1,2,5\n",
    ),
    "a label that is a word": Mistake(
        "UserError: train/data.csv, line 1, column 0: 'yes' is not a label: a finite number is "
        "needed (so too line 2). Correct these rows (words as classes: class_labels=auto), leave them out "
        "with "
        "invalid_label=drop, or name "
        "another column with label_column.",
        train=b"yes,2,3\nno,2,4\n",
    ),
    "infinite values": Mistake(
        "UserError: train/data.csv, line 2, column 1: 'inf' is infinite, or beyond a 32-bit float "
        "(3.4e38) (so too line 3). Correct the values, or let them count as missing with "
        "infinity=missing.",
        train=b"1,2,3\n0,inf,4\n1,-inf,5\n",
    ),
    "a number beyond 32 bits": Mistake(
        "UserError: train/data.csv, line 2, column 1: '1e400' is infinite, or beyond a 32-bit float"
        " (3.4e38). Correct the values, or let them count as missing with infinity=missing.",
        train=b"1,2,3\n0,1e400,4\n",
    ),
    "a negative weight": Mistake(
        "UserError: train/data.csv, line 2, column 1: '-1' is not a weight: a finite number, 0 or "
        "more, is needed. Correct these rows.",
        {"csv_weights": 1},
        b"1,2,3\n0,-1,4\n",
    ),
    "an empty weight": Mistake(
        "UserError: train/data.csv, line 3, column 1 ('w'): the weight is empty: a finite number, 0 "
        "or more, is needed. Correct these rows.",
        {"weight_column": "w"},
        b"y,w,x\n1,1,3\n0,,4\n",
    ),
    "half a group": Mistake(
        "UserError: train/data.csv, line 2, column 1: '1.5' is not a group: an integer is needed. "
        "Number the groups.",
        {"objective": "rank:ndcg", "group_column": 1},
        b"1,1,3\n0,1.5,4\n",
    ),
    "weights within a group": Mistake(
        "UserError: channel train: the rows of group 1 have weights from 3 to 4. XGBoost weighs "
        "whole groups: give all rows of a group the same weight.",
        {"objective": "rank:ndcg", "group_column": 1, "weight_column": 2},
        b"1,1,3,0\n0,1,4,0\n",
        whole=True,
    ),
    "an empty bound": Mistake(
        "UserError: train/data.csv, line 2, column 1: the upper bound is empty: a number above 0 "
        "and not below the lower bound, or inf, is needed. Correct these rows.",
        {"objective": "survival:aft", "label_lower_column": 0, "label_upper_column": 1},
        b"1,2,3\n2,,4\n",
    ),
    "a bound below 0": Mistake(
        "UserError: train/data.csv, line 2, column 0: '-5' is not a lower bound: a number, 0 or more, or "
        "-inf is needed. Correct these rows.",
        {"objective": "survival:aft", "label_lower_column": 0, "label_upper_column": 1},
        b"1,2,3\n-5,4,4\n",
    ),
    "bounds the wrong way round": Mistake(
        "UserError: train/data.csv, line 2, column 1: '4' is not an upper bound: a number above 0 "
        "and not below the lower bound, or inf, is needed. Correct these rows.",
        {"objective": "survival:aft", "label_lower_column": 0, "label_upper_column": 1},
        b"1,2,3\n5,4,4\n",
    ),
    "every row dropped": Mistake(
        "UserError: channel train: all 2 rows were left out, for none has a number as its label "
        "(invalid_label=drop): check label_column.",
        {"invalid_label": "drop"},
        b",2,3\n,2,4\n",
        whole=True,
    ),
    "a label that is missing in Parquet": Mistake(
        "UserError: train/data.parquet, row 1, column 0 ('label'): the label is empty: a finite "
        "number is needed. Correct these rows (words as classes: class_labels=auto), leave them out with "
        "invalid_label=drop, or name another"
        " column with label_column.",
        train=parquet(table(COLUMNS, label=[1.0, None])),
        whole=True,
    ),
    "an infinite value in Parquet": Mistake(
        "UserError: train/data.parquet, row 1, column 2 ('b'): inf is infinite, or beyond a 32-bit "
        "float (3.4e38). Correct the values, or let them count as missing with infinity=missing.",
        train=parquet(table(COLUMNS, b=[3.0, float("inf")])),
    ),
    "bad cells in both channels": Mistake(
        "UserError: 2 mistakes. 1. train/data.csv, line 2, column 1: 'old' is not a number. A "
        "missing value is an empty cell, NA, NaN, null, None or N/A. Encode "
        "other text as numbers, name its column in categorical_columns, or leave it out with drop_columns.",
        train=b"1,2,3\n0,old,4\n",
        validation=b"1,2,3\nx,2,3\n",
        whole=True,
    ),
}

LABELS = {
    "1 and 2 for a binary objective": Mistake(
        "UserError: channel train has the labels 1, 2, but for objective=binary:logistic a label is"
        " a number from 0 to 1: recode the labels as 0 and 1 (class_labels=auto does so), or choose another "
        "objective." + FIRST,
        {"objective": "binary:logistic"},
        b"1,2\n2,3\n",
        whole=True,
    ),
    "-1 and 1 for hinge": Mistake(
        "UserError: channel train has the labels -1, 1, but for objective=binary:hinge a label is 0"
        " or 1: recode the labels as 0 and 1 (class_labels=auto does so), or choose another "
        "objective." + FIRST,
        {"objective": "binary:hinge"},
        b"-1,2\n1,3\n",
    ),
    "a class below 0": Mistake(
        "UserError: channel train has the labels -1, 1, but for objective=multi:softmax a label is "
        "a whole number from 0 to num_class - 1: recode the labels as 0, 1, 2 and so on (class_labels=auto "
        "does so), or choose another "
        "objective." + FIRST,
        {"objective": "multi:softmax", "num_class": 3},
        b"-1,2\n1,3\n",
    ),
    "half a class": Mistake(
        "UserError: channel train has the labels 0, 1.5, but for objective=multi:softprob a label "
        "is a whole number from 0 to num_class - 1: recode the labels as 0, 1, 2 and so on "
        "(class_labels=auto does so), or choose "
        "another objective." + FIRST,
        {"objective": "multi:softprob"},
        b"0,2\n1.5,3\n",
    ),
    "bounds and no label for rmse": Mistake(
        "UserError: eval_metric: metric rmse needs labels, and survival:aft has bounds: use "
        "aft-nloglik or interval-regression-accuracy.",
        {
            "objective": "survival:aft",
            "eval_metric": "rmse",
            "label_lower_column": 0,
            "label_upper_column": 1,
        },
        b"1,2,3\n2,4,4\n",
    ),
    "a class too many": Mistake(
        "UserError: channel train has the label 2, but num_class=2 allows 0 to 1: set num_class=3, "
        "or leave it out to have the classes counted.",
        {"objective": "multi:softmax", "num_class": 2},
        b"0,2\n1,3\n2,3\n",
    ),
    "a class too many in validation": Mistake(
        "UserError: channel validation has the label 3, but num_class=2 allows 0 to 1: set "
        "num_class=4, or leave it out to have the classes counted.",
        {"objective": "multi:softmax", "num_class": 2},
        b"0,2\n1,3\n",
        validation=b"0,2\n3,3\n",
        whole=True,
    ),
    "numbers that are no classes": Mistake(
        "UserError: channel train has the label 123456792, which makes 123,456,793 classes of 2 "
        "rows: number the classes 0, 1, 2 and so on.",
        {"objective": "multi:softmax"},
        b"0,2\n123456789,3\n",
    ),
    "numbers far apart that are no classes": Mistake(
        "UserError: the 2 different labels (0, 150) make 151 classes, one more than the largest: number the "
        "classes 0, 1, 2 and so on, or set num_class.",
        {"objective": "multi:softmax"},
        b"0,2\n150,3\n" * 100,
    ),
    "nothing but what was not seen to the end": Mistake(
        "UserError: channel train has no label above 0 (they are -5, -2), and objective=survival:cox needs "
        "a time of an event, which is above 0 (a negative one says that the event was not seen).",
        {"objective": "survival:cox"},
        b"-5,2\n-2,3\n",
    ),
    "nothing but 0 for tweedie": Mistake(
        "UserError: channel train has no label above 0 (they are 0), and objective=reg:tweedie needs some "
        "amount above 0.",
        {"objective": "reg:tweedie"},
        b"0,2\n0,3\n",
    ),
    "rows that all weigh nothing": Mistake(
        "UserError: channel train: the weights of all 2 rows are 0: give some row a weight above 0, or leave "
        "out the setting that names the weights.",
        {"csv_weights": 1},
        b"1,0,3\n0,0,4\n",
    ),
    "as many first predictions as other classes": Mistake(
        "UserError: base_score has 2 numbers, and there are 3 classes: give one number, or one for each "
        "class.",
        {"objective": "multi:softmax", "base_score": "[0.5, 0.5]"},
        b"0,2\n1,3\n2,3\n",
    ),
    "a negative count": Mistake(
        "UserError: channel train has the labels -1, 0, but for objective=count:poisson a label is "
        "a number >= 0: recode the labels, or choose another objective." + FIRST,
        {"objective": "count:poisson"},
        b"0,2\n-1,3\n",
    ),
    "0 for gamma": Mistake(
        "UserError: channel train has the labels 0, 1, but for objective=reg:gamma a label is a "
        "number > 0: recode the labels, or choose another objective." + FIRST,
        {"objective": "reg:gamma"},
        b"0,2\n1,3\n",
    ),
    "below 0 for tweedie": Mistake(
        "UserError: channel train has the labels -0.5, 1, but for objective=reg:tweedie a label is "
        "a number >= 0: recode the labels, or choose another objective." + FIRST,
        {"objective": "reg:tweedie"},
        b"-0.5,2\n1,3\n",
    ),
    "-1 for the logarithmic error": Mistake(
        "UserError: channel train has the labels -1, 1, but for objective=reg:squaredlogerror a "
        "label is a number > -1: recode the labels, or choose another objective." + FIRST,
        {"objective": "reg:squaredlogerror"},
        b"-1,2\n1,3\n",
    ),
    "2 for a probability": Mistake(
        "UserError: channel train has the labels 1, 2, but for objective=reg:logistic a label is a "
        "number from 0 to 1: recode the labels, or choose another objective." + FIRST,
        {"objective": "reg:logistic"},
        b"2,2\n1,3\n",
    ),
    "a label beyond 1 for auc": Mistake(
        "UserError: channel train has the labels 1, 2, but for metric auc a label is a number from "
        "0 to 1: recode the labels, or set eval_metric to others." + FIRST,
        {"eval_metric": "auc"},
        b"2,2\n1,3\n",
    ),
    "half a class for accuracy": Mistake(
        "UserError: channel train has the labels 0.5, 1, but for metric accuracy a label is 0 or 1:"
        " recode the labels as 0 and 1 (class_labels=auto does so), or set eval_metric to others." + FIRST,
        {"objective": "binary:logistic", "eval_metric": "accuracy"},
        b"0.5,2\n1,3\n",
    ),
    "a grade for map": Mistake(
        "UserError: channel train has the labels 1, 2, but for objective=rank:map a label is 0 or "
        "1: recode the labels, or choose another objective." + FIRST,
        {"objective": "rank:map", "group_column": 1},
        b"2,1,3\n1,1,4\n",
    ),
    "a grade too high": Mistake(
        "UserError: channel train has the labels 1, 40, but for objective=rank:ndcg a label is a "
        "grade, a whole number from 0 to 31 (any, with ndcg_exp_gain=false): recode the labels, or "
        "choose another objective." + FIRST,
        {"objective": "rank:ndcg", "group_column": 1},
        b"40,1,3\n1,1,4\n",
    ),
}

TABLE = {**CELLS, **LABELS}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_value_ends_the_job_with_one_plain_sentence(name: str, tmp_path: Path) -> None:
    assert_fails(TABLE[name], tmp_path)
