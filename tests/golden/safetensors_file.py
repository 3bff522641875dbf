"""Makes safetensors_file.safetensors by the PyPI package `safetensors`, for tests/train/safetensors_test.cpp.

    pip install safetensors==0.8.0 numpy==2.4.6 ml_dtypes==0.6.0
    python tests/golden/safetensors_file.py          # makes the file beside this script
    python tests/golden/safetensors_file.py FILE     # reads a file by the package, and prints what it holds
"""

import pathlib
import sys

import ml_dtypes
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

HALVES = [0.0, -0.0, 1.0, -1.5, 65504.0, 6.1035156e-05, 5.9604645e-08, 6.0975552e-05, np.inf, -np.inf, np.nan]
BRAINS = [0.0, -0.0, 1.0, -1.5, 3.3895314e38, 1.1754944e-38, 9.1835496e-41, 3.140625, np.inf, -np.inf, np.nan]


def make(path):
    tensors = {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3) / 8,
        "double": np.array([np.pi, -1e300, 5e-324]),
        "scalar": np.array(0.5, dtype=np.float32),
        "scalar double": np.array(1 / 3),
        "half": np.array(HALVES, dtype=np.float16),
        "brain": np.array(BRAINS, dtype=ml_dtypes.bfloat16).reshape(11, 1),
        "empty": np.zeros((3, 0, 2), dtype=np.float32),
        "größe \"q\"\\\n": np.array([7.0], dtype=np.float32),
        "ids": np.array([[1, -2]], dtype=np.int64),
        "mask": np.array([True, False, True]),
    }
    save_file(tensors, path, metadata={"format": "np", "note": "α\n\"β\""})


def show(path):
    with safe_open(path, framework="np") as file:
        print("metadata:", file.metadata())
    for name, value in sorted(load_file(path).items()):
        print(f"{name}: {value.dtype} {value.shape} sum {value.sum():.9g}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        show(sys.argv[1])
    else:
        make(pathlib.Path(__file__).with_suffix(".safetensors"))
