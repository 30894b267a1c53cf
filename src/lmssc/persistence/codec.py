"""Encoding of fitted models as a JSON tree and blocks of numbers. Decoding yields data and never runs code."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from inspect import getattr_static
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from lmssc.persistence.container import DamagedFileError, is_fortran_ordered

# Earlier names of types and of fitted attributes, for files of that time.
RENAMED_TYPES = {
    "ContentOrder": "CanonicalOrder",
    "Expectation": "LabelRegressor",
    "Features": "NystroemFeatures",
    "Geometry": "Embedding",
    "Newcomers": "NewSampleProbe",
}
RENAMED_ATTRIBUTES = {
    "_expectation": "_label_regressor",
    "_geometry": "_embedding",
    "_newcomers": "_probe",
    "_places": "_embedded",
}
# Parameters that belong to one run and not to the model.
RUNTIME_PARAMS = ("callback", "checkpoint", "client", "memory_limit", "n_jobs", "verbose")
# Fitted attributes that can be computed again, and are not saved.
RUNTIME_ATTRIBUTES = ("_inner", "_raw_scores", "_local")
# Booleans, integers, floats, bytes and text, little-endian; any other dtype is refused.
DTYPES = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|\|S[1-9][0-9]{0,8}|<U[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class TypeTable:
    """The classes that a file may name; any other is refused.

    Attributes
    ----------
    estimators : mapping of str to type
        Estimators by class name.
    parts : mapping of str to type
        Dataclasses and named tuples that fitted estimators hold, by class name.
    """

    estimators: Mapping[str, type] = field(default_factory=dict)
    parts: Mapping[str, type] = field(default_factory=dict)


@dataclass(frozen=True)
class DecodingLimits:
    """Limits that keep a forged file from exhausting the memory."""

    max_copied: int = 4
    """Bytes copied while decoding, as a multiple of the file size."""
    max_length: int = 1 << 48
    """Length of an array along one axis; no file that fits on a disk has more."""
    max_ndim: int = 8
    """Axes of an array."""


LIMITS = DecodingLimits()


class Encoder:
    """Turns values into a JSON tree; arrays are collected in `blocks`, which the tree refers to by index.

    Parameters
    ----------
    types : TypeTable
        Classes that may be encoded, besides numbers, text, arrays and collections of these.

    Examples
    --------
    >>> encoder = Encoder(TypeTable())
    >>> encoder.encode({"a": (1, None)}, "value")
    {'dict': [['a', {'tuple': [1, None]}]]}
    >>> encoder.encode(np.array([1.0, 2.0]), "value"), encoder.blocks
    ({'array': {'block': 0, 'dtype': '<f8', 'shape': [2], 'order': 'C'}}, [array([1., 2.])])
    """

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self.blocks: list[NDArray] = []
        # An array that occurs twice is stored once. The reference to the array keeps its id from being reused.
        self._seen: dict[int, tuple[NDArray, int]] = {}

    def encode(self, value: Any, where: str) -> Any:
        """Tree of a value; `where` is its name in error messages."""
        if value is None or isinstance(value, bool | str) or (type(value) is int):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": self.encode(list(value), where)}
        if isinstance(value, slice):
            return {"slice": self.encode([value.start, value.stop, value.step], where)}
        if type(value) is dict:
            return {"dict": [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), where)}
        if isinstance(value, np.ma.MaskedArray):
            return {"masked": [self.encode(part, where) for part in (value.data, np.ma.getmaskarray(value))]}
        if isinstance(value, np.ndarray):
            return self._objects(value, where) if value.dtype == object else {"array": self._array(value, where)}
        if isinstance(value, sparse.csr_array):
            parts = [self._array(part, where) for part in (value.data, value.indices, value.indptr)]
            return {"csr": {"shape": list(value.shape), "parts": parts}}
        if self._types.estimators.get(type(value).__name__) is type(value):
            return {"estimator": self.encode_estimator(value, where)}
        if self._types.parts.get(type(value).__name__) is type(value):
            names = _field_names(type(value))
            return {
                "part": type(value).__name__,
                "fields": {name: self.encode(getattr(value, name), f"{where}.{name}") for name in names},
            }
        raise TypeError(
            f"{where} cannot be saved to a model file: it is a {type(value).__module__}.{type(value).__qualname__}. "
            f"{_advice(value, where)}"
        )

    def encode_estimator(self, estimator: BaseEstimator, where: str) -> dict[str, Any]:
        """Tree of an estimator: its class, its parameters and its fitted attributes."""
        parameters = estimator.get_params(deep=False)
        saved = {name: value for name, value in parameters.items() if name not in RUNTIME_PARAMS}
        left_out = {*parameters, *RUNTIME_ATTRIBUTES}
        fitted = {name: value for name, value in vars(estimator).items() if name not in left_out}
        prefix = f"{where}." if where else ""
        return {
            "class": type(estimator).__name__,
            "parameters": {name: self.encode(value, prefix + name) for name, value in saved.items()},
            "fitted": {name: self.encode(value, prefix + name) for name, value in fitted.items()},
        }

    def _array(self, array: NDArray, where: str) -> dict[str, Any]:
        dtype = array.dtype.newbyteorder("<")
        if not DTYPES.fullmatch(dtype.str) or dtype.metadata:
            raise TypeError(
                f"{where} cannot be saved to a model file: it is an array of {array.dtype}. Booleans, integers, "
                "floats up to float64 and text can be saved"
            )
        if id(array) not in self._seen:
            self._seen[id(array)] = (array, len(self.blocks))
            self.blocks.append(array.astype(dtype, copy=False))
        number = self._seen[id(array)][1]
        order = "F" if is_fortran_ordered(self.blocks[number]) else "C"
        return {"block": number, "dtype": dtype.str, "shape": list(array.shape), "order": order}

    def _objects(self, array: NDArray, where: str) -> dict[str, Any]:
        """Array of Python objects, such as labels: its distinct values, and the index of each element among them."""
        numbers: dict[tuple[type, Any], int] = {}
        codes = np.empty(array.size, dtype=np.int32)
        different: list[Any] = []
        for i, item in enumerate(array.ravel()):
            plain = item is None or isinstance(item, bool | int | float | str | np.generic)
            codes[i] = numbers.setdefault((type(item), item if plain else i), len(numbers))
            if codes[i] == len(different):
                different.append(self.encode(item, f"{where}[{i}]"))
        return {"objects": {"different": different, "codes": self._array(codes.reshape(array.shape), where)}}


def _advice(value: Any, where: str) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "Use an integer as random_state"
    if callable(value):
        return "Functions are code, which a model file never contains; use a value instead"
    return (
        "Numbers, text, arrays, and lists and dicts of these can be saved. If you added the attribute, delete it first "
        f"(del clf.{where})"
    )


class Decoder:
    """Turns a tree back into values.

    Parameters
    ----------
    read_block : callable
        (index of a block, number of bytes) ↦ an array of that many bytes, the same one for the same block; raises
        `DamagedFileError` if the file does not have them.
    types : TypeTable
        Classes that the tree may name.
    n_bytes : int
        Size of the file. Arrays are views of its blocks, and what has to be copied is at most a few times as large:
        a block that the tree refers to many times takes its memory once.
    saved_by : str
        Version of lmssc that wrote the tree; the estimators' `_upgrade` fills in what earlier versions lack.
    """

    def __init__(
        self, read_block: Callable[[int, int], NDArray], types: TypeTable, n_bytes: int, saved_by: str = "unknown"
    ) -> None:
        self._read_block = read_block
        self._types = types
        self._saved_by = saved_by
        self._bytes_to_copy = LIMITS.max_copied * n_bytes
        self._arrays: dict[tuple, NDArray] = {}
        self._sparse: dict[tuple, sparse.csr_array] = {}
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": _special_float,
            "tuple": lambda body: tuple(self.decode(_typed(body, list))),
            "slice": self._slice,
            "dict": lambda body: {self.decode(k): self.decode(v) for k, v in _typed(body, list)},
            "scalar": lambda body: self._array(body)[()],
            "masked": self._masked,
            "array": self._array,
            "objects": self._objects,
            "csr": self._csr,
            "estimator": self.decode_estimator,
        }

    def decode(self, tree: Any) -> Any:
        """Value of a tree."""
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if "part" in tree:
            return self._part(tree)
        ((kind, body),) = tree.items()
        if kind not in self._readers:
            raise DamagedFileError(f"it has a value of the unknown kind {kind!r}")
        return self._readers[kind](body)

    def decode_estimator(self, tree: Any) -> Any:
        """Estimator of a tree."""
        name = tree["class"]
        if name not in self._types.estimators:
            raise DamagedFileError(f"it is a model of the class {name!r}, which this version of lmssc does not have")
        cls: Any = self._types.estimators[name]
        parameters = {key: self.decode(value) for key, value in _typed(tree["parameters"], dict).items()}
        fitted = {
            RENAMED_ATTRIBUTES.get(key, key): self.decode(value) for key, value in _typed(tree["fitted"], dict).items()
        }
        cls._upgrade(parameters, fitted, self._saved_by)
        known = set(cls._get_param_names())
        strange = sorted(set(parameters) - known)
        if strange:
            raise DamagedFileError(f"{name} has no parameter {strange[0]!r} in this version of lmssc")
        for key in fitted:
            # An attribute must neither replace a method nor be special to Python.
            if not key.isidentifier() or key.startswith("__") or key in known or _is_of_class(cls, key):
                raise DamagedFileError(f"{name} cannot have a fitted attribute {key!r}")
        estimator = cls(**parameters)
        vars(estimator).update(fitted)
        return estimator

    def _array(self, body: Any) -> NDArray:
        shape, text = _shape(body["shape"]), _typed(body["dtype"], str)
        if not DTYPES.fullmatch(text):
            raise DamagedFileError(f"it has an array of the unknown dtype {text!r}")
        dtype = np.dtype(text)
        order = "F" if body["order"] == "F" else "C"
        key = (_typed(body["block"], int), text, shape, order)
        if key in self._arrays:
            return self._arrays[key]
        flat = self._read_block(_typed(body["block"], int), dtype.itemsize * math.prod(shape))
        if dtype.kind == "b" and flat.max(initial=0) > 1:
            raise DamagedFileError("it has booleans that are neither true nor false")
        if dtype.kind == "U" and flat.view("<u4").max(initial=0) > 0x10FFFF:
            raise DamagedFileError("it has text with invalid characters")
        native = flat.view(dtype).astype(dtype.newbyteorder("="), copy=False)
        self._arrays[key] = native.reshape(shape, order=order)
        return self._arrays[key]

    def _count_copies(self, *arrays: NDArray) -> None:
        """Count arrays that are about to be copied."""
        self._bytes_to_copy -= sum(array.nbytes for array in arrays)
        if self._bytes_to_copy < 0:
            raise DamagedFileError("it refers to its blocks so often that copies of them would not fit into memory")

    def _masked(self, body: Any) -> np.ma.MaskedArray:
        values, mask = (self.decode(part) for part in _typed(body, list, 2))
        self._count_copies(values, mask)
        return np.ma.MaskedArray(values, mask)

    def _objects(self, body: Any) -> NDArray:
        different = np.empty(len(_typed(body["different"], list)), dtype=object)
        for i, item in enumerate(body["different"]):
            different[i] = self.decode(item)
        codes = self._array(body["codes"])
        if codes.dtype != np.int32 or (codes.size and not 0 <= codes.min() <= codes.max() < len(different)):
            raise DamagedFileError("it has an array of labels that refers to a label it does not have")
        self._count_copies(codes)
        return different[codes]

    def _csr(self, body: Any) -> sparse.csr_array:
        data, indices, indptr = (self._array(part) for part in _typed(body["parts"], list, 3))
        shape = _shape(body["shape"])
        key = (id(data), id(indices), id(indptr), shape)
        if key in self._sparse:
            return self._sparse[key]
        self._count_copies(indices, indptr)
        matrix = sparse.csr_array((data, indices, indptr), shape=shape)
        # The compiled code that multiplies sparse matrices trusts the indices.
        matrix.check_format(full_check=True)
        self._sparse[key] = matrix
        return matrix

    def _slice(self, body: Any) -> slice:
        return slice(*(self.decode(part) for part in _typed(body, list, 3)))

    def _part(self, tree: Any) -> Any:
        name = RENAMED_TYPES.get(tree["part"], tree["part"])
        if name not in self._types.parts:
            raise DamagedFileError(f"it has a part {name!r}, which this version of lmssc does not have")
        cls = self._types.parts[name]
        values = {key: self.decode(value) for key, value in _typed(tree["fields"], dict).items()}
        if hasattr(cls, "upgraded"):  # its fields were others in earlier versions
            values = cls.upgraded(values)
        strange = sorted(set(values) - set(_field_names(cls)))
        if strange:
            raise DamagedFileError(f"{name} has no field {strange[0]!r} in this version of lmssc")
        return cls(**values)


def _field_names(cls: Any) -> Sequence[str]:
    return [field.name for field in fields(cls)] if is_dataclass(cls) else cls._fields


def _is_of_class(cls: type, name: str) -> bool:
    """Whether the class itself has an attribute `name`; a default of None may be replaced."""
    return getattr_static(cls, name, None) is not None


def _typed(value: Any, kind: type, length: int | None = None) -> Any:
    """`value`, if it is of this type and length."""
    if type(value) is not kind or (length is not None and len(value) != length):  # type: ignore[arg-type]
        raise DamagedFileError("its header is malformed")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    sizes = [_typed(size, int) for size in _typed(value, list)]
    if len(sizes) > LIMITS.max_ndim or any(not 0 <= size <= LIMITS.max_length for size in sizes):
        raise DamagedFileError(f"it has an array of the impossible shape {sizes}")
    return tuple(sizes)


def _special_float(text: Any) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise DamagedFileError(f"it has the unknown number {text!r}")
    return float(text)
