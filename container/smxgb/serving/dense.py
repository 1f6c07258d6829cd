"""Dense rows straight to XGBoost's C interface (`XGBoosterPredictFromDense`, c_api.h).

`Booster.inplace_predict` calls the same function. What it does around it in Python takes longer than the
prediction of one row itself, and half of the time of a small request.
"""

from __future__ import annotations

import ctypes
import json
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from xgboost._c_api import _LIB, _check_call  # the loaded library has no public name

if TYPE_CHECKING:
    from typing import Literal

    import xgboost as xgb

    from smxgb.rows import FloatArray


def predict_dense(
    booster: xgb.Booster, rows: FloatArray, kind: Literal["value", "margin"], rounds: tuple[int, int]
) -> FloatArray:
    """Return what `booster.inplace_predict` returns for rows of the model's width, shape (rows, features)."""
    rows = np.ascontiguousarray(rows, np.float32)
    count, width = rows.shape
    array = b'{"data":[%d,true],"shape":[%d,%d],"typestr":"<f4","version":3}' % (
        rows.ctypes.data,
        count,
        width,
    )
    shape = ctypes.POINTER(ctypes.c_uint64)()
    dimensions = ctypes.c_uint64()
    values = ctypes.POINTER(ctypes.c_float)()
    _check_call(
        _LIB.XGBoosterPredictFromDense(
            booster.handle,
            array,
            _asked(kind, *rounds),
            None,
            ctypes.byref(shape),
            ctypes.byref(dimensions),
            ctypes.byref(values),
        )
    )
    # The values are XGBoost's, until this thread predicts again.
    found: FloatArray = np.ctypeslib.as_array(values, tuple(shape[: dimensions.value])).copy()
    return found


@cache
def _asked(kind: Literal["value", "margin"], begin: int, end: int) -> bytes:
    """Return what is asked for, as JSON; NaN is what JSON does not have, and XGBoost's parser reads."""
    asked = {
        "type": int(kind == "margin"),
        "training": False,
        "iteration_begin": begin,
        "iteration_end": end,
        "missing": float("nan"),
        "strict_shape": False,
        "cache_id": 0,
    }
    return json.dumps(asked).encode()
