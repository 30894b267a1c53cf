"""Invalid calls of `lmssc classify` and `lmssc predict`: one line says what is wrong and where; no output."""

import datetime
import errno
import gzip
import io
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from lmssc.cli import main
from small_files import WRITERS, json_lines_text, label_text, make_problem, table_text, view_text

pytestmark = pytest.mark.usefixtures("quick_fits")

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
        r"b\.csv cannot be read as text: it is a zip archive or a workbook",
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
JOINS = {
    "duplicate ids": (
        changed("b.csv", 4, lines("b.csv")[2]),
        CALL,
        r"b\.csv, line 4, column 'id': .*'s001' appears twice.*line 3",
    ),
    "duplicate ids after cleaning": (cell("b.csv", 4, 1, " s001 "), CALL, r"b\.csv, line 4.*'s001' appears twice"),
    "blank id": (cell("b.csv", 4, 1, ""), CALL, r"b\.csv, line 4, column 'id': the id is blank"),
    "ids of another type": (
        {"b.csv": view_text("b", B, range(N))},
        CALL,
        r"b\.csv has no id in common with a\.csv: its first id is '0', that of the other 's000'",
    ),
    "ids with zeros in front": (
        {"a.csv": view_text("a", A, range(N)), "b.csv": view_text("b", B, [f"{n:05d}" for n in range(N)])},
        CALL,
        r"b\.csv has no id in common with a\.csv: its first id is '00000', that of the other '0'",
    ),
    "ids in other letters": ({"b.csv": GOOD["b.csv"].replace("s0", "S0")}, CALL, r"b\.csv has no id in common"),
    "numbers with a part as ids": alone(
        "x.parquet",
        parquet(id=[n + 0.5 for n in range(N)], x=list(range(N))),
        r"x\.parquet, row 1, column 'id': 0\.5 is not an id",
    ),
    "an id is null": alone(
        "x.parquet",
        parquet(id=[*IDS[:-1], None], x=list(range(N))),
        rf"x\.parquet, row {N}, column 'id': the id is blank",
    ),
    "no such --id": ({}, CALL + " --id key", r"a\.csv has no column 'key', which --id names; it has id, a1"),
    "--id in one file only": (
        *third(GOOD["b.csv"].replace("id,", "key,", 1), XCALL + " --id id"),
        r"x\.csv has no column 'id'",
    ),
    "no ids and another number of rows": (
        *third(numbered(N - 1)),
        r"x\.csv \(view 'x'\) has 23 rows, but a\.csv .* has 24",
    ),
    "a huge file of another number of rows": (
        *third(numbered(50_000)),
        r"x\.csv \(view 'x'\) has 50000 rows, but a\.csv",
    ),
    "a matrix of another number of rows": alone("x.npy", npy(np.ones((N + 5, 3))), r"x\.npy \(view 'x'\) has 29 rows"),
    "a matrix turned round": alone("x.npy", npy(B.T), r"x\.npy .*24 columns.*--transpose x"),
    "no ids beside files in two orders": (
        {"b.csv": "\n".join([lines("b.csv")[0], *lines("b.csv")[:0:-1]]), "x.npy": npy(A)},
        "classify a.csv b.csv x.npy --labels labels.csv --out out",
        r"x\.npy has no ids, and a\.csv, b\.csv are not in the same order",
    ),
    "a sample of which nothing is known": (
        {"a.csv": changed("a.csv", 5, "s003,,,,,,")["a.csv"]},
        "classify a.csv --labels labels.csv --out out",
        r"a\.csv, line 5: the sample 's003'",
    ),
    "a sample of which nothing is known in any view": (
        changed("a.csv", 5, "s003" + "," * 6) | changed("b.csv", 5, "s003" + "," * 5),
        CALL,
        r"a\.csv, line 5: the sample 's003'",
    ),
    "a file twice": ({}, "classify a.csv a.csv --labels labels.csv --out out", r"a\.csv is given twice"),
    "two views of one name": (
        {"a.tsv": GOOD["b.csv"].replace(",", "\t")},
        "classify a.csv a.tsv --labels labels.csv --out out",
        r"two views would be named 'a', from a\.csv and a\.tsv.*NAME=FILE",
    ),
    "the same name given twice": (
        {},
        "classify v=a.csv v=b.csv --labels labels.csv --out out",
        r"two views would be named 'v'",
    ),
    "a name for a file of several views": (
        {"x.npz": npz(p=A, q=B), **BY_PLACE},
        "classify v=x.npz --labels y.csv --out out",
        r"v=x\.npz: the file has several views, p, q",
    ),
    "a named file that is not there": (
        {},
        "classify v=c.csv --labels labels.csv --out out",
        r"c\.csv: no such file",
    ),
}
LABEL_FILES = {
    "no labels": ({}, "classify a.csv b.csv --out out", r"where are the labels\? .*--labels FILE.*--label-column"),
    "a label for an unknown id": (
        {"labels.csv": GOOD["labels.csv"] + "nobody,u\n"},
        CALL,
        rf"labels\.csv, line {len(lines('labels.csv')) + 1}: no view has a sample with the id 'nobody'",
    ),
    "labels for other ids": (
        {"labels.csv": "id,label\n1,u\n2,v\n3,w\n"},
        CALL,
        r"labels\.csv, line 2: no view has a sample with the id '1' .*3 such ids.*first sample is 's000'",
    ),
    "one label only": (
        {"labels.csv": "id,label\ns001,u\n"},
        CALL,
        r"labels\.csv, column 'label': all 1 labels are 'u'",
    ),
    "one class only": (
        {"labels.csv": "id,label\ns001,u\ns002,u\n"},
        CALL,
        r"labels\.csv.*all 2 labels are 'u'; at least two",
    ),
    "one class and -1": (
        {"labels.csv": "id,label\ns001,1\ns002,-1\n"},
        CALL,
        r"labels\.csv.*all 1 labels are '1'.*if -1 is one",
    ),
    "no label at all": ({"labels.csv": "id,label\ns001,\ns002,\n"}, CALL, r"labels\.csv.*no sample has a label"),
    "all labels NA": ({"labels.csv": "id,label\ns001,NA\ns002,NA\n"}, CALL, r"labels\.csv.*no sample has a label"),
    "empty labels": ({"labels.csv": ""}, CALL, r"labels\.csv is empty"),
    "labels with a header only": ({"labels.csv": "id,label\n"}, CALL, r"labels\.csv has a header but no rows"),
    "a sample labelled twice": (
        {"labels.csv": GOOD["labels.csv"] + lines("labels.csv")[1] + "\n"},
        CALL,
        r"labels\.csv, line \d+.*twice",
    ),
    "label with a blank id": (
        {"labels.csv": GOOD["labels.csv"] + ",u\n"},
        CALL,
        r"labels\.csv, line \d+, column 'id': the id is blank",
    ),
    "label column absent": (
        {},
        CALL + " --label-column kind",
        r"labels\.csv has no column 'kind', which --label-column names; it has id, label",
    ),
    "label column absent in views": (
        {},
        "classify a.csv --label-column kind --out out",
        r"--label-column kind: no file has such a column; there are id, a1",
    ),
    "several columns that may be labels": (
        {"labels.csv": "id,p,q\ns001,u,v\n"},
        CALL,
        r"labels\.csv: which column has the labels\? It has p, q",
    ),
    "only ids in labels": ({"labels.csv": "id\ns001\n"}, CALL, r"labels\.csv has no column with labels; it has id"),
    "labels without a header": ({"labels.csv": "1,0\n2,1\n3,0\n"}, CALL, r"labels\.csv, line 1: numbers"),
    "labels with a cell too many": (
        {"labels.csv": GOOD["labels.csv"] + "s023,u,v\n"},
        CALL,
        r"labels\.csv, line \d+: 3 cells",
    ),
    "labels by place, too few": (
        {"labels.csv": "label\nu\nv\nw\n"},
        CALL,
        r"labels\.csv has 3 rows, but there are 24 samples",
    ),
    "labels by place, views in two orders": (
        {"b.csv": "\n".join([lines("b.csv")[0], *lines("b.csv")[:0:-1]]), "labels.csv": BY_PLACE["y.csv"]},
        CALL,
        r"labels\.csv has no column of ids, and the views are in different orders",
    ),
    "labels with ids, views without": (
        {"x.npy": npy(A)},
        "classify x.npy --labels labels.csv --out out",
        r"labels\.csv has ids, but the views have none",
    ),
    "labels in two views": (
        {
            "a.csv": table_text(
                ["id", "x", "label"],
                [[key, n % 7, label] for n, (key, label) in enumerate(zip(IDS, LABELS, strict=True))],
            )
        }
        | {
            "b.csv": table_text(
                ["id", "y", "label"],
                [[key, n % 7, label] for n, (key, label) in enumerate(zip(IDS, LABELS, strict=True))],
            )
        },
        "classify a.csv b.csv --out out",
        r"a\.csv, b\.csv all have a column 'label': put the labels into",
    ),
    "no two labels the same": (
        {
            "a.csv": table_text(["x", "label"], [[n % 7, f"class{n}"] for n in range(80)]),
        },
        "classify a.csv --out out",
        r"a\.csv, column 'label': no two of the 80 labels are the same; is this the right column",
    ),
    "labels in numbers with a blank column": (
        {"a.csv": table_text(["x", "label"], [[n, ""] for n in range(9)])},
        "classify a.csv --out out",
        r"a\.csv, column 'label': no sample has a label",
    ),
    "--unlabelled takes a class away": (
        {"labels.csv": "id,label\ns001,u\ns002,v\n"},
        CALL + " --unlabelled v",
        r"labels\.csv.*all 1 labels are 'u'",
    ),
    "labels as a matrix": (
        {"y.npy": npy(A)},
        "classify a.csv --labels y.npy --out out",
        r"y\.npy has no column with labels; it has a matrix",
    ),
    "labels as a vector of another length": (
        {"y.npy": npy(np.array([0, 1, -1]))},
        "classify a.csv --labels y.npy --out out",
        r"y\.npy has 3 rows, but there are 24 samples",
    ),
    "labels as a vector of -1": (
        {"y.npy": npy(np.full(N, -1))},
        "classify a.csv --labels y.npy --out out",
        r"y\.npy: no sample has a label",
    ),
    "labels as objects": (
        {"y.npy": npy(np.array(["a", None], dtype=object), allow_pickle=True)},
        "classify a.csv --labels y.npy --out out",
        r"y\.npy holds Python objects, which are never read",
    ),
    "labels as a timestamp": (
        {"y.parquet": parquet(id=IDS[:2], label=[DAY, DAY])},
        "classify a.csv --labels y.parquet --out out",
        r"y\.parquet, column 'label': it holds (date|timestamp)",
    ),
    "labels is a folder": ({}, "classify a.csv --labels . --out out", r"\. is a folder; name the files in it"),
    "labels of another format": (
        {"y.txt": "id,label\n"},
        "classify a.csv --labels y.txt --out out",
        r"y\.txt: \.txt is not a supported format",
    ),
    "labels with the wrong delimiter": (
        {"labels.csv": GOOD["labels.csv"].replace(",", "\t")},
        CALL,
        r"labels\.csv, line 1: it has no ','",
    ),
    "labels of binary junk": ({"labels.csv": bytes(range(256))}, CALL, r"labels\.csv is not a text file"),
    "labels and views by the same columns": (
        {},
        "classify a.csv --labels a.csv --out out",
        r"a\.csv: which column has the labels",
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
OPTIONS = {
    "no --out": ({}, "classify a.csv --labels labels.csv", r"--out DIR is missing"),
    "--seed below 0": ({}, CALL + " --seed -1", r"--seed must be from 0"),
    "--seed too large": ({}, CALL + " --seed 4294967296", r"--seed must be from 0"),
    "--jobs 0": ({}, CALL + " --jobs 0", r"--jobs must be 1 or more"),
    "--view without columns": ({}, CALL + " --view v=", r"--view 'v=' must be NAME=COLUMNS"),
    "--view without a name": ({}, CALL + " --view =a1", r"--view '=a1' must be NAME=COLUMNS"),
    "--view without either": ({}, CALL + " --view a1", r"--view 'a1' must be NAME=COLUMNS"),
    "--view with an empty part": ({}, CALL + " --view v=a1,,a2", r"--view 'v=a1,,a2' must be NAME=COLUMNS"),
    "--view twice": ({}, CALL + " --view v=a1 --view v=a2", r"--view v is given twice"),
    "--view of no column": ({}, CALL + " --view v=c1", r"--view v: no file has a column 'c1'"),
    "--view with a slip": ({}, CALL + " --view v=aa1", r"--view v: no file has a column 'aa1'; did you mean 'a1'\?"),
    "--view with a star for nothing": ({}, CALL + " --view v=zz*", r"--view v: no file has a column 'zz\*'"),
    "--view of two files": (
        {},
        CALL + " --view v=a1,b1",
        r"--view v: its columns are in more than one file: a\.csv, b\.csv",
    ),
    "--view with a star for two files": ({}, CALL + " --view v=*1", r"--view v: '\*1' is in more than one file"),
    "--view of the ids": (
        {},
        "classify a.csv --labels labels.csv --out out --view v=id",
        r"--view: column 'id' of a\.csv holds the ids",
    ),
    "--view backwards": ({}, CALL + " --view v=a5..a2", r"--view: 'a5\.\.a2': in a\.csv 'a2' comes before 'a5'"),
    "--view of text and numbers": (
        *third(
            "id,x,t\n" + "".join(f"{key},{row % 3},a word on {key}\n" for row, key in enumerate(IDS)),
            XCALL + " --view v=x,t",
        ),
        r"view 'v': column 't' of x\.csv is text",
    ),
    "--view of a column with a fault": (
        cell("b.csv", 7, 4, "high"),
        CALL + " --view v=b1,b3",
        r"b\.csv, line 7, column 'b3': 'high'",
    ),
    "--view of a matrix and more": (
        {"x.npz": npz(p=A, q=B), **BY_PLACE},
        "classify x.npz --labels y.csv --out out --view v=p,q",
        r"--view v: a matrix has to be a view of its own; p, q cannot be combined",
    ),
    "--view that makes a name twice": ({}, CALL + " --view b=a1..a3", r"two views would be named 'b'"),
    "--prefix-sep and --view": ({}, CALL + " --prefix-sep _ --view v=a1", r"--prefix-sep and --view cannot"),
    "--prefix-sep of nothing": ({}, [*CALL.split(), "--prefix-sep", ""], r"--prefix-sep must not be empty"),
    "--drop of no column": ({}, CALL + " --drop c1", r"--drop c1: no file has such a column or matrix"),
    "--drop of everything": ({}, CALL + " --drop b1,b2,b3,b4,b5", r"b\.csv contains no view: --drop leaves"),
    "--transpose of no view": (
        {},
        CALL + " --transpose c",
        r"--transpose c: there is no such view; the views are a, b",
    ),
    "--transpose of a table": ({}, CALL + " --transpose a", r"no id in common with a\.csv: its first id is"),
    "out is a file": ({"out": "mine"}, CALL, r"--out out is a file"),
    "out is below a file": (
        {"file": ""},
        CALL.replace("--out out", "--out file/out"),
        r"--out file/out cannot be written",
    ),
    "out is not empty": ({"out/mine.txt": "mine"}, CALL, r"--out out is not empty.*--force"),
}
USAGE = {
    "no view": "classify --labels labels.csv --out out",
    "an unknown option": CALL + " --speed 3",
    "--seed is no number": CALL + " --seed x",
    "--jobs is no number": CALL + " --jobs many",
    "--format of another kind": CALL + " --format xml",
    "predict without --out": "predict model.lmssc a.csv",
    "predict without views": "predict model.lmssc --out out.csv",
    "predict without anything": "predict",
}
PREDICTIONS = {
    "no such model": ({}, PREDICT.replace("model.lmssc", "none.lmssc"), r"none\.lmssc: No such file"),
    "model is a folder": ({"m.lmssc/x": ""}, PREDICT.replace("model.lmssc", "m.lmssc"), r"m\.lmssc is a folder"),
    "model is a CSV file": ({}, PREDICT.replace("model.lmssc", "a.csv"), r"a\.csv is not a model file"),
    "model is empty": ({"m.lmssc": ""}, PREDICT.replace("model.lmssc", "m.lmssc"), r"m\.lmssc is empty"),
    "model is junk": (
        {"m.lmssc": bytes(range(256))},
        PREDICT.replace("model.lmssc", "m.lmssc"),
        r"m\.lmssc is not a model file",
    ),
    "no such view file": ({}, PREDICT.replace("b.csv", "c.csv"), r"c\.csv: no such file"),
    "no view": (
        {"c.csv": GOOD["b.csv"].replace("b", "c")},
        PREDICT.replace("a.csv b.csv", "c.csv"),
        r"no file has the view 'a' of the model, whose views are a, b",
    ),
    "a view too many": (
        *third(GOOD["b.csv"], PREDICT.replace("b.csv", "b.csv x.csv")),
        r"x\.csv matches none of the model's views",
    ),
    "files of other names and columns": (
        {"c.csv": GOOD["b.csv"].replace("b", "c")},
        PREDICT.replace("b.csv", "c.csv"),
        r"no file has the view 'b' of the model.*b=FILE",
    ),
    "a column too few": (
        {"b.csv": "\n".join(line.rpartition(",")[0] for line in lines("b.csv"))},
        PREDICT,
        r"b\.csv lacks columns of the model's view 'b': b5 \(1 of 5\)",
    ),
    "columns of other names": (
        changed("b.csv", 1, "id,p,q,r,s,t"),
        PREDICT,
        r"b\.csv lacks columns of the model's view 'b': b1, b2",
    ),
    "a matrix of another width": (
        {"b.npy": npy(B[:, :3])},
        PREDICT.replace("b.csv", "b.npy"),
        r"b\.npy: view 'b' has 3 features, but the model was fitted to 5",
    ),
    "text in a number column of new samples": (
        cell("b.csv", 7, 4, "high"),
        PREDICT,
        r"b\.csv, line 7, column 'b3': 'high'",
    ),
    "infinity in new samples": (cell("b.csv", 7, 4, "inf"), PREDICT, r"b\.csv, line 7, column 'b3': infinite"),
    "duplicate ids in new samples": (changed("b.csv", 4, lines("b.csv")[2]), PREDICT, r"b\.csv, line 4.*twice"),
    "ids of another type in new samples": (
        {"b.csv": view_text("b", B, range(N))},
        PREDICT,
        r"b\.csv has no id in common with a\.csv",
    ),
    "no ids and another number of new samples": (
        {"b.npy": npy(B[:5])},
        PREDICT.replace("b.csv", "b.npy"),
        r"b\.npy \(view 'b'\) has 5 rows",
    ),
    "a new sample without any view": (
        changed("a.csv", 5, "s003" + "," * 6) | changed("b.csv", 5, "s003" + "," * 5),
        PREDICT,
        r"a\.csv, line 5: the sample 's003'",
    ),
    "empty new samples": ({"b.csv": ""}, PREDICT, r"b\.csv is empty"),
    "wrong delimiter in new samples": (
        {"b.csv": GOOD["b.csv"].replace(",", "|")},
        PREDICT,
        r"b\.csv, line 1: it has no ','",
    ),
    "no header in new samples": (without("b.csv", 1), PREDICT, r"b\.csv, line 1: numbers"),
    "no such --id for new samples": ({}, PREDICT + " --id key", r"a\.csv has no column 'key'"),
    "one file that could be either view": (
        {"both.csv": GOOD["a.csv"], "c.csv": GOOD["b.csv"], "d.csv": GOOD["b.csv"]},
        "predict model.lmssc a.csv c.csv d.csv --out out.csv",
        r"view 'b' of the model could be in c\.csv, d\.csv; say which with b=c\.csv",
    ),
    "output of predict is a folder": ({"out.csv/x": ""}, PREDICT, r"--out out\.csv is a folder"),
    "output of predict is there": ({"out.csv": "mine"}, PREDICT, r"--out out\.csv already exists.*--force"),
}
CASES = {**TEXT_FILES, **JSON_LINES, **JOINS, **LABEL_FILES, **ARRAYS, **OPTIONS, **PREDICTIONS}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that was made of the good files."""
    folder = tmp_path_factory.mktemp("model")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
        write({})
        assert main([*CALL.split(), "-q"]) == 0
    return folder / "out" / "model.lmssc"


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    shutil.copy(model, "model.lmssc")


def write(files):
    for name, content in {**GOOD, **BY_PLACE, **files}.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def everything():
    """All files below, hidden ones too, with their content."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def check_refused(call, message, capsys, code=2):
    before = everything()
    assert main(call if isinstance(call, list) else call.split()) == code
    captured = capsys.readouterr()
    assert re.fullmatch(r"lmssc: error: .+\n", captured.err), captured.err
    assert re.search(message, captured.err), captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err) < 500
    assert everything() == before


@pytest.mark.parametrize("case", CASES)
def test_bad_call(case, capsys):
    files, call, message = CASES[case]
    write(files)
    check_refused(call, message, capsys, code=3 if "cannot be written" in message else 2)


def damage(content, how):
    if how == "empty":
        return b""
    if how == "junk":
        return np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    # Not between two lines: half of a JSON Lines file may be a whole one.
    return content[: len(content) // 2].rstrip(b"}\n")


@pytest.mark.parametrize("how", ["empty", "junk", "cut off", "a folder", "absent"])
@pytest.mark.parametrize("form", WRITERS)
def test_damaged_file(form, how, capsys):
    write({})
    name = WRITERS[form][0](Path(), "x", B, IDS)
    path = Path(name)
    content = path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how != "absent":
        path.write_bytes(damage(content, how))
    check_refused(f"classify a.csv {name} --labels labels.csv --out out", rf"{re.escape(name)}\b", capsys)


@pytest.mark.parametrize("case", USAGE)
def test_calls_that_the_parser_refuses(case, capsys):
    write({})
    before = everything()
    with pytest.raises(SystemExit, match="2"):
        main(USAGE[case].split())
    assert re.search(r"\nlmssc( \w+)?: error: .+\n$", capsys.readouterr().err)
    assert everything() == before


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


OUTPUTS = {
    "predictions": ("lmssc.cli.classify_run.write_predictions", CALL),
    "what to label": ("lmssc.cli.classify_run.write_to_label", CALL),
    "the model": ("lmssc.estimators.base.MultiViewClassifier.save", CALL),
    "the report": ("lmssc.report.write_report", CALL),
    "the folder": ("pathlib.Path.mkdir", CALL),
    "the last step": ("pathlib.Path.rename", CALL),
    "predictions into a folder that is there": (
        "lmssc.cli.classify_run.write_predictions",
        CALL.replace("--out out", "--out there"),
    ),
    "predictions into deep folders": (
        "lmssc.cli.classify_run.write_predictions",
        CALL.replace("--out out", "--out p/q/r"),
    ),
    "predictions of new samples": ("lmssc.cli.predict_run.write_predictions", PREDICT),
    "the last step of new samples": ("os.replace", PREDICT),
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_disk_full(what, capsys, monkeypatch):
    write({})
    Path("there").mkdir()
    monkeypatch.setattr("lmssc.report.write_report", lambda path, *args, **kwargs: path.touch())
    target, call = OUTPUTS[what]
    monkeypatch.setattr(target, full)
    check_refused(call + " -q", r"--out \S+ cannot be written: No space left on device", capsys, code=3)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_that_is_full(capsys):
    """The real thing: what is written to it is refused when it is flushed."""
    write({})
    import lmssc.persistence.atomic

    original = open

    def open_full(path, mode="r", *args, **kwargs):
        return original("/dev/full" if "w" in mode else path, mode, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lmssc.persistence.atomic, "open", open_full, raising=False)
        check_refused(PREDICT + " -q", r"--out out\.csv cannot be written: No space left", capsys, code=3)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_must_not_be_written_to(capsys):
    write({})
    Path("locked").mkdir(mode=0o500)
    check_refused(
        CALL.replace("--out out", "--out locked/out"), r"cannot be written: Permission denied", capsys, code=3
    )


def test_folder_that_refuses(capsys, monkeypatch):
    """For root, whom no mode of a folder stops."""
    write({})

    def refuse(self, *args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    check_refused(CALL + " -q", r"--out out cannot be written: Permission denied", capsys, code=3)


@pytest.mark.parametrize(
    ("module", "file"), [("pyarrow.parquet", "x.parquet"), ("pyarrow.feather", "x.feather"), ("h5py", "x.mat")]
)
def test_an_extra_that_is_not_installed(module, file, capsys, monkeypatch):
    write({file: b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n"})
    monkeypatch.setitem(__import__("sys").modules, module, None)
    package = module.partition(".")[0]
    call = f"classify a.csv {file} --labels labels.csv --out out"
    check_refused(call, rf"files need {package}: pip install 'lmssc\[files\]'", capsys)


def test_there_are_enough():
    assert len(CASES) + 5 * len(WRITERS) + len(USAGE) + len(OUTPUTS) >= 200
