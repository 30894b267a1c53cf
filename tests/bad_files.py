"""Files that `lmssc classify` must refuse, each with a call and what the error says."""

import datetime
import gzip
import io

import numpy as np
import scipy.io
from scipy import sparse

from small_files import json_lines_text, label_text, make_problem, table_text, view_text

N = 24
VIEWS, IDS, LABELS = make_problem(N)
A, B = VIEWS["a"], VIEWS["b"]
GOOD = {"a.csv": view_text("a", A, IDS), "b.csv": view_text("b", B, IDS), "labels.csv": label_text(IDS, LABELS)}
CALL = "classify a.csv b.csv --labels labels.csv --out out"
REFUSE_BLANKS = CALL + " --impute none"
PREDICT = "predict model.lmssc a.csv b.csv --out out.csv"
BY_PLACE = {"y.csv": table_text(["label"], [[label or "NA"] for label in LABELS])}


def lines(name):
    return GOOD[name].splitlines()


def changed(name, line, text):
    """A good file with another line (counted from 1)."""
    new = lines(name)
    new[line - 1] = text
    return {name: "\n".join(new) + "\n"}


def without(name, line):
    return {name: "\n".join(text for number, text in enumerate(lines(name), 1) if number != line) + "\n"}


def cell(name, line, column, text):
    """A good file with another cell (counted from 1)."""
    cells = lines(name)[line - 1].split(",")
    cells[column - 1] = text
    return changed(name, line, ",".join(cells))


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def mat(**arrays):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays)
    return buffer.getvalue()


def mtx(matrix):
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, matrix)
    return buffer.getvalue()


def parquet(**columns):
    import pyarrow
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def holed(array, where, value):
    array = array.copy()
    array[where] = value
    return array


def numbered(n_rows):
    return "x,y,z\n" + "".join(f"{row},{row % 7},1\n" for row in range(n_rows))


DAY = datetime.date(2024, 1, 1)
XCALL = "classify a.csv x.csv --labels labels.csv --out out"


def third(text, call=XCALL):
    return {"x.csv": text}, call


def alone(name, content, message, options=""):
    """A case of one file beside a.csv."""
    return {name: content}, XCALL.replace("x.csv", name) + options, message


# name: (files, call, what the message must say)
TEXT_FILES = {
    "no such view": ({}, "classify a.csv c.csv --labels labels.csv --out out", r"c\.csv: no such file"),
    "no such labels": ({}, "classify a.csv --labels c.csv --out out", r"c\.csv: no such file"),
    "semicolons": (
        *third(GOOD["b.csv"].replace(",", ";"), XCALL + " --delimiter comma"),
        r"x\.csv, line 1: it has no ',' but ';'.*--delim",
    ),
    "tabs": (
        *third(GOOD["b.csv"].replace(",", "\t")),
        r"x\.csv, line 1: it has no ',' but '\\t'.*--delimiter tab",
    ),
    "bars": (*third(GOOD["b.csv"].replace(",", "|")), r"x\.csv, line 1: it has no ',' but '\|'"),
    "blanks": (*third(GOOD["b.csv"].replace(",", " ")), r"x\.csv, line 1: a single column.*not by spaces"),
    "commas in a TSV": alone("x.tsv", GOOD["b.csv"], r"x\.tsv, line 1: it has no '\\t' but ','"),
    "wrong --delimiter": ({}, CALL + " --delimiter semicolon", r"a\.csv, line 1: it has no ';' but ','"),
    "unknown --delimiter": ({}, CALL + " --delimiter colon", r"--delimiter 'colon' is not one of comma, tab"),
    "no header": (without("b.csv", 1), CALL, r"b\.csv, line 1: numbers .*must name the columns"),
    "no header, no ids": (*third("0.5,0.25\n" * N), r"x\.csv, line 1: numbers \(0\.5, 0\.25\)"),
    "nameless column": (changed("b.csv", 1, "id,b1,,b3,b4,b5"), CALL, r"b\.csv, line 1: column 3 has no name"),
    "same name twice": (changed("b.csv", 1, "id,b1,b2,b1,b4,b5"), CALL, r"b\.csv, line 1: columns 2 and 4.*'b1'"),
    "a cell too few": (
        changed("b.csv", 9, "s007,1,2,3"),
        CALL,
        r"b\.csv, line 9: 4 cells, but the first line names 6 columns",
    ),
    "a cell too many": (changed("b.csv", 9, "s007,1,2,3,4,5,6"), CALL, r"b\.csv, line 9: 7 cells"),
    "decimal commas": (cell("b.csv", 5, 3, '"1,5"'), CALL, r"b\.csv, line 5, column 'b2': '1,5' has a decimal comma"),
    "all decimal commas": (
        *third("id;x\n" + "".join(f"{key};{n},5\n" for n, key in enumerate(IDS)), XCALL + " --delimiter semicolon"),
        r"a\.csv, line 1: it has no ';'",
    ),
    "header only": ({"b.csv": lines("b.csv")[0] + "\n"}, CALL, r"b\.csv has a header but no rows"),
    "empty": ({"b.csv": ""}, CALL, r"b\.csv is empty"),
    "empty lines only": ({"b.csv": "\n\n \n"}, CALL, r"b\.csv is empty"),
    "a quote that is never closed": (cell("b.csv", 4, 2, '"0.5'), CALL, r"b\.csv, line 4: .*quotation mark"),
    "text behind a quote": (cell("b.csv", 4, 1, '"s002"x'), CALL, r"b\.csv, line 4: .*quotation mark"),
    "Latin-1": (
        {"b.csv": GOOD["b.csv"].replace("s003", "é").encode("latin-1")},
        CALL,
        r"b\.csv, line \d+.*0xe9 is not UTF-8",
    ),
    "UTF-16": ({"b.csv": GOOD["b.csv"].encode("utf-16")}, CALL, r"b\.csv cannot be read as text: it is text in UTF-16"),
    "zero bytes": ({"b.csv": GOOD["b.csv"].replace("s003", "\0")}, CALL, r"b\.csv is not a text file: .*zero"),
    "a workbook": (
        {"b.csv": b"PK\x03\x04" + b"x" * 50},
        CALL,
        r"b\.csv cannot be read as text: it is a zip archive, or a workbook whose name should end in \.xlsx",
    ),
    "an old workbook": (
        {"b.csv": b"\xd0\xcf\x11\xe0" + b"x" * 50},
        CALL,
        r"b\.csv cannot be read as text.* \(\.xls\): save the sheet as CSV",
    ),
    "Parquet named CSV": ({"b.csv": b"PAR1" + b"x" * 50}, CALL, r"b\.csv cannot be .*should end in \.parquet"),
    "gzip named CSV": ({"b.csv": gzip.compress(b"id,x")}, CALL, r"b\.csv cannot be .*should end in \.gz"),
    "numpy named CSV": ({"b.csv": npy(B)}, CALL, r"b\.csv cannot be .*should end in \.npy"),
    "CSV named gzip": alone("x.csv.gz", GOOD["b.csv"], r"x\.csv\.gz: not a complete gzip file"),
    "gzip with a wrong checksum": alone(
        "x.csv.gz", gzip.compress(GOOD["b.csv"].encode())[:-8] + b"12345678", r"x\.csv\.gz: not a complete gzip file"
    ),
    "text in a number column": (
        cell("b.csv", 7, 4, "high"),
        CALL,
        r"b\.csv, line 7, column 'b3': 'high' is not a number",
    ),
    "text in the last row": (
        cell("b.csv", N + 1, 6, "x"),
        CALL,
        rf"b\.csv, line {N + 1}, column 'b5': 'x' is not a number",
    ),
    "a unit beside a number": (
        cell("b.csv", 2, 2, "5 cm"),
        CALL,
        r"b\.csv, line 2, column 'b1': '5 cm' has a unit, unlike the other cells of the column",
    ),
    "a long text": (cell("b.csv", 2, 2, "x" * 500), CALL, r"b\.csv, line 2, column 'b1': 'xxx.*\.\.\.' is not"),
    "blank cell": (cell("b.csv", 6, 3, ""), REFUSE_BLANKS, r"b\.csv, line 6, column 'b2': blank or NaN; fill it in"),
    "NaN cell": (cell("b.csv", 6, 3, "NaN"), REFUSE_BLANKS, r"b\.csv, line 6, column 'b2': blank or NaN"),
    "NA cell": (cell("b.csv", 6, 3, "NA"), REFUSE_BLANKS, r"b\.csv, line 6, column 'b2': blank or NaN"),
    "infinite cell": (cell("b.csv", 6, 3, "-inf"), CALL, r"b\.csv, line 6, column 'b2': infinite"),
    "a number too large": (cell("b.csv", 6, 3, "1e300"), CALL, r"b\.csv, line 6, column 'b2': 1e\+300 is too large"),
    "blank rows everywhere": (
        *third("id,x\n" + "".join(f"{key},\n" for key in IDS)),
        r"x\.csv: all rows of x are blank",
    ),
    "text without words": (
        *third("id,t\n" + "".join(f"{key},{'! ' * row}!\n" for row, key in enumerate(IDS))),
        r"x\.csv, column 't': it contains no words",
    ),
    "only ids": (*third("id\n" + "\n".join(IDS)), r"x\.csv contains no view: no columns besides ids and labels"),
    "only ids and labels": (*third("id,label\n" + "".join(f"{key},u\n" for key in IDS)), r"x\.csv contains no view"),
    "wrong ending": alone("x.txt", GOOD["b.csv"], r"x\.txt: \.txt is not a supported format.*\.csv"),
    "no ending": (
        {"x": GOOD["b.csv"]},
        "classify a.csv x --labels labels.csv --out out",
        r"x: no ending is not a supported format",
    ),
    "a workbook by name": alone("x.xlsx", b"PK", r"x\.xlsx is not a complete Excel workbook"),
    "a pickle": alone("x.pkl", b"\x80\x04N.", r"x\.pkl: \.pkl is not a supported format"),
    "gzipped Parquet": alone("x.parquet.gz", b"", r"\.parquet\.gz is not a supported format"),
    "spaces and Unicode in the path": (
        {"mäßig gut.csv": changed("b.csv", 3, "s001,1")["b.csv"]},
        ["classify", "a.csv", "mäßig gut.csv", "--labels", "labels.csv", "--out", "out"],
        r"mäßig gut\.csv, line 3: 2 cells",
    ),
    "spaces and Unicode in a path that is not there": (
        {},
        ["classify", "a.csv", "ключ 日本.csv", "--labels", "labels.csv", "--out", "out"],
        r"ключ 日本\.csv: no such file",
    ),
    "line numbers after cells of several lines": (
        *third('id,note,x\n"s000","a\nb\nc",1\n' + "s001,d,oops\n" + "".join(f"{key},e,2\n" for key in IDS[2:])),
        r"x\.csv, line 5, column 'x': 'oops'",
    ),
}
XLINES = XCALL.replace("x.csv", "x.jsonl")


def json_line(number, text):
    """A good JSON Lines file with another line (counted from 1)."""
    new = json_lines_text("b", B, IDS).splitlines()
    new[number - 1] = text
    return {"x.jsonl": "\n".join(new) + "\n"}


JSON_LINES = {
    "a line that is no JSON": (
        json_line(5, "{'id': 1}"),
        XLINES,
        r"x\.jsonl, line 5: not a JSON object, .*character 2",
    ),
    "two objects on a line": (json_line(5, "{} {}"), XLINES, r"x\.jsonl, line 5: not a JSON object, Extra data"),
    "a line that is a list": (json_line(5, "[1, 2]"), XLINES, r"x\.jsonl, line 5: it must be an object.*not a list"),
    "a line that is a number": (json_line(5, "1"), XLINES, r"x\.jsonl, line 5: it must be an object.*not a number"),
    "a JSON file of many lines": ({"x.jsonl": '[\n {"x": 1}\n]\n'}, XLINES, r"x\.jsonl, line 1: not a JSON object"),
    "empty lines count in JSON Lines": (json_line(3, "\n\n{"), XLINES, r"x\.jsonl, line 5: not a JSON object"),
    "only empty lines in JSON Lines": (
        {"x.jsonl": "\n\n"},
        XLINES,
        r"x\.jsonl is empty; each line must be a JSON object",
    ),
    "no keys in JSON Lines": ({"x.jsonl": "{}\n" * N}, XLINES, r"x\.jsonl contains no view"),
    "a key twice in JSON Lines": (
        json_line(5, '{"id": "s004", "b1": 1, "b1": 2}'),
        XLINES,
        r"x\.jsonl, line 5: the key 'b1' .*twice",
    ),
    "not UTF-8 in JSON Lines": (
        {"x.jsonl": b'{"x": 1}\n{"x": "\xff"}\n'},
        XLINES,
        r"x\.jsonl, line 2: byte 0xff is not UTF-8",
    ),
    "half a pair in JSON Lines": (
        json_line(5, r'{"id": "\ud800"}'),
        XLINES,
        r"x\.jsonl, line 5: half of a surrogate pair",
    ),
    "deep in JSON Lines": (
        json_line(5, '{"b1": ' + "[" * 200_000),
        XLINES,
        r"x\.jsonl, line 5: too long a number or too deeply",
    ),
    "a long number in JSON Lines": (
        json_line(5, '{"b1": ' + "9" * 9999 + "}"),
        XLINES,
        r"x\.jsonl, line 5: too long a number",
    ),
    "a list in a cell in JSON Lines": (
        json_line(5, '{"id": "s004", "b1": [1, 2]}'),
        XLINES,
        r"x\.jsonl, line 5, column 'b1': a list, neither a number nor text; leave it out with --drop",
    ),
    "an object as id in JSON Lines": (
        json_line(5, '{"id": {"n": 4}}'),
        XLINES,
        r"x\.jsonl, line 5, column 'id': an object",
    ),
    "text among numbers in JSON Lines": (
        json_line(5, '{"id": "s004", "b1": "high"}'),
        XLINES,
        r"x\.jsonl, line 5, column 'b1': 'high'",
    ),
    "infinity in JSON Lines": (
        json_line(5, '{"id": "s004", "b1": Infinity}'),
        XLINES,
        r"x\.jsonl, line 5, column 'b1': infinite",
    ),
    "a blank number in JSON Lines": (
        json_line(5, '{"id": "s004", "b2": 1}'),
        XLINES + " --impute none",
        r"x\.jsonl, line 5, column 'b1': blank or NaN",
    ),
    "no id in JSON Lines": (json_line(5, '{"b1": 1}'), XLINES, r"x\.jsonl, line 5, column 'id': the id is blank"),
    "an id twice in JSON Lines": (
        json_line(5, '{"id": "s002", "b1": 1}'),
        XLINES,
        r"line 5, column 'id': .*twice, first in line 3",
    ),
}
ARRAYS = {
    "a vector as a view": alone("x.npy", npy(np.ones(N)), r"x\.npy contains no view: only the vector x"),
    "three dimensions": alone("x.npy", npy(np.ones((N, 2, 2))), r"x\.npy has the shape \(24, 2, 2\)"),
    "objects": alone(
        "x.npy", npy(np.full((N, 2), None), allow_pickle=True), r"x\.npy holds Python objects, which are never"
    ),
    "complex numbers": alone("x.npy", npy(A * 1j), r"x\.npy holds complex128"),
    "dates": alone("x.npy", npy(np.zeros((N, 2), dtype="M8[s]")), r"x\.npy holds datetime64"),
    "a matrix of text": alone("x.npy", npy(np.full((N, 2), "a")), r"x\.npy has the shape \(24, 2\).*of numbers"),
    "records": alone("x.npy", npy(np.zeros(N, dtype=[("p", "f8")])), r"x\.npy holds .*'p'"),
    "no columns": alone("x.npy", npy(np.ones((N, 0))), r"x\.npy: view 'x' has no columns"),
    "no rows": alone("x.npy", npy(np.ones((0, 3))), r"x\.npy has no rows"),
    "NaN in a matrix": alone(
        "x.npy", npy(holed(B, (4, 2), np.nan)), r"x\.npy, row 5, column 3: blank or NaN", " --impute none"
    ),
    "infinity in a matrix": alone("x.npy", npy(holed(B, (4, 2), np.inf)), r"x\.npy, row 5, column 3: infinite"),
    "nothing in an npz": alone("x.npz", npz(), r"x\.npz contains no matrix"),
    "only numbers in an npz": alone("x.npz", npz(k=3), r"x\.npz contains no matrix, only k"),
    "objects in an npz": alone("x.npz", npz(p=A, q=np.array([None])), r"x\.npz, array 'q\.npy' holds Python objects"),
    "ids of another number in an npz": alone(
        "x.npz", npz(id=np.array(IDS[:5]), p=A), r"x\.npz: view 'x' has 24 rows, but there are 5 ids"
    ),
    "half a sparse matrix": alone(
        "x.npz", npz(format=b"csr", shape=[N, 3], data=np.ones(2)), r"x\.npz is not a complete sparse matrix"
    ),
    "a sparse matrix with wrong indices": alone(
        "x.npz",
        npz(format=b"csr", shape=[2, 2], data=np.ones(2), indices=np.array([0, 99]), indptr=np.array([0, 1, 2])),
        r"x\.npz is not a complete sparse matrix",
    ),
    "an npy that claims to be huge": alone(
        "x.npy", npy(A).replace(b"(24, 6)", b"(24, 9)"), r"x\.npy is not a complete numpy array"
    ),
    "text in a MATLAB file": alone("x.mat", mat(s="hello"), r"x\.mat contains no view"),
    "a structure in a MATLAB file": alone("x.mat", mat(s={"p": 1}), r"x\.mat contains no matrix of numbers"),
    "no label in SVMlight": alone("x.svm", "1:0.5 2:1\n" * N, r"x\.svm, line 1: it must start with a number"),
    "a broken pair in SVMlight": alone("x.svm", "0 1:0.5\n0 2:x\n", r"x\.svm, line 2: '2:x' is not of the form"),
    "features out of order in SVMlight": alone(
        "x.svm", "0 1:1\n0 3:1 2:1\n", r"x\.svm, line 2: feature 2 is out of order"
    ),
    "a feature beyond all bounds in SVMlight": alone(
        "x.svm", "0 99999999999:1\n", r"x\.svm, line 1: feature 99999999999"
    ),
    "infinity in SVMlight": alone(
        "x.svm", "0 1:1\n" * 3 + "0 2:inf\n" + "0 1:1\n" * (N - 4), r"x\.svm, line 4, column 2: inf"
    ),
    "no head in MatrixMarket": alone("x.mtx", "3 3 1\n1 1 1\n", r"x\.mtx, line 1: not a MatrixMarket file"),
    "complex MatrixMarket": alone("x.mtx", mtx(sparse.coo_array(A * 1j)), r"x\.mtx holds complex numbers"),
    "an index beyond the size in MatrixMarket": alone(
        "x.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n9 9 1.0\n",
        r"x\.mtx, entry 1: \(9, 9\) is not within 2 x 2",
    ),
    "a text in MatrixMarket": alone(
        "x.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 one\n",
        r"x\.mtx, line 3: expected 3 numbers",
    ),
    "only dates in Parquet": alone(
        "x.parquet", parquet(id=IDS, day=[DAY] * N), r"x\.parquet contains no view: Not used in x\.parquet: day \(dates"
    ),
    "a view of dates in Parquet": alone(
        "x.parquet",
        parquet(id=IDS, day=[DAY] * N, x=np.ones(N)),
        r"x\.parquet, column 'day': it holds date32.*--drop",
        " --view v=day",
    ),
    "lists of text in Parquet": alone(
        "x.parquet", parquet(id=IDS, x=[["a", "b"]] * N), r"x\.parquet, column 'x': it holds list"
    ),
    "no rows in Parquet": alone("x.parquet", parquet(x=np.ones(0)), r"x\.parquet has columns but no rows"),
    "null in Parquet": alone(
        "x.parquet",
        parquet(id=IDS, x=[row / 2 for row in range(N - 1)] + [None], y=[row % 3 for row in range(N)]),
        rf"x\.parquet, row {N}, column 'x': blank or NaN",
        " --impute none",
    ),
}
