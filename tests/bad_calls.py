"""Calls of `lmssc classify` and `lmssc predict` that must be refused: labels, joins, options, models."""

import numpy as np

from bad_files import (
    BY_PLACE,
    CALL,
    DAY,
    GOOD,
    IDS,
    LABELS,
    PREDICT,
    XCALL,
    A,
    B,
    N,
    alone,
    cell,
    changed,
    lines,
    npy,
    npz,
    numbered,
    parquet,
    third,
    without,
)
from small_files import table_text, view_text

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
# Files of labels that are wrong for good views.
WRONG_LABELS = {
    "a label for an unknown id": (
        GOOD["labels.csv"] + "nobody,u\n",
        rf"labels\.csv, line {len(lines('labels.csv')) + 1}: no view has a sample with the id 'nobody'",
    ),
    "labels for other ids": (
        "id,label\n1,u\n2,v\n3,w\n",
        r"labels\.csv, line 2: no view has a sample with the id '1' .*3 such ids.*first sample is 's000'",
    ),
    "one label only": ("id,label\ns001,u\n", r"labels\.csv, column 'label': the only label is 'u'"),
    "one class only": ("id,label\ns001,u\ns002,u\n", r"labels\.csv.*all 2 labels are 'u'; at least two"),
    "one class and -1": ("id,label\ns001,1\ns002,-1\n", r"labels\.csv.*the only label is '1'.*if -1 is one"),
    "no label at all": ("id,label\ns001,\ns002,\n", r"labels\.csv.*no sample has a label"),
    "all labels NA": ("id,label\ns001,NA\ns002,NA\n", r"labels\.csv.*no sample has a label"),
    "empty labels": ("", r"labels\.csv is empty"),
    "labels with a header only": ("id,label\n", r"labels\.csv has a header but no rows"),
    "a sample labelled twice": (GOOD["labels.csv"] + lines("labels.csv")[1] + "\n", r"labels\.csv, line \d+.*twice"),
    "label with a blank id": (GOOD["labels.csv"] + ",u\n", r"labels\.csv, line \d+, column 'id': the id is blank"),
    "several columns that may be labels": (
        "id,p,q\ns001,u,v\n",
        r"labels\.csv: which column has the labels\? It has p, q",
    ),
    "only ids in labels": ("id\ns001\n", r"labels\.csv has no column with labels; it has id"),
    "labels without a header": ("1,0\n2,1\n3,0\n", r"labels\.csv, line 1: numbers"),
    "labels with a cell too many": (GOOD["labels.csv"] + "s023,u,v\n", r"labels\.csv, line \d+: 3 cells"),
    "labels by place, too few": ("label\nu\nv\nw\n", r"labels\.csv has 3 rows, but there are 24 samples"),
    "labels with the wrong delimiter": (GOOD["labels.csv"].replace(",", "\t"), r"labels\.csv, line 1: it has no ','"),
    "labels of binary junk": (bytes(range(256)), r"labels\.csv is not a text file"),
}
LABEL_FILES = {name: ({"labels.csv": text}, CALL, message) for name, (text, message) in WRONG_LABELS.items()} | {
    "no labels": ({}, "classify a.csv b.csv --out out", r"where are the labels\? .*--labels FILE.*--label-column"),
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
    "label column misspelt": (
        {},
        "classify a.csv --label-column a01 --out out",
        r"--label-column a01: no file has such a column; did you mean 'a1'",
    ),
    "a column in the place of a file of labels": (
        {},
        "classify a.csv --labels a1 --out out",
        r"a1: no such file; for the column of a view, write --label-column a1",
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
        r"labels\.csv.*the only label is 'u'",
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
    "labels and views by the same columns": (
        {},
        "classify a.csv --labels a.csv --out out",
        r"a\.csv: which column has the labels",
    ),
}
# Options that are wrong for good files.
WRONG_OPTIONS = {
    "--seed below 0": ("--seed -1", r"--seed must be from 0"),
    "--seed too large": ("--seed 4294967296", r"--seed must be from 0"),
    "--jobs 0": ("--jobs 0", r"--jobs must be 1 or more"),
    "--view without columns": ("--view v=", r"--view 'v=' must be NAME=COLUMNS"),
    "--view without a name": ("--view =a1", r"--view '=a1' must be NAME=COLUMNS"),
    "--view without either": ("--view a1", r"--view 'a1' must be NAME=COLUMNS"),
    "--view with an empty part": ("--view v=a1,,a2", r"--view 'v=a1,,a2' must be NAME=COLUMNS"),
    "--view twice": ("--view v=a1 --view v=a2", r"--view v is given twice"),
    "--view of no column": ("--view v=c1", r"--view v: no file has a column 'c1'"),
    "--view with a slip": ("--view v=aa1", r"--view v: no file has a column 'aa1'; did you mean 'a1'\?"),
    "--view with a star for nothing": ("--view v=zz*", r"--view v: no file has a column 'zz\*'"),
    "--view of two files": ("--view v=a1,b1", r"--view v: its columns are in more than one file: a\.csv, b\.csv"),
    "--view with a star for two files": ("--view v=*1", r"--view v: '\*1' is in more than one file"),
    "--view backwards": ("--view v=a5..a2", r"--view: 'a5\.\.a2': in a\.csv 'a2' comes before 'a5'"),
    "--view that makes a name twice": ("--view b=a1..a3", r"two views would be named 'b'"),
    "--prefix-sep and --view": ("--prefix-sep _ --view v=a1", r"--prefix-sep and --view cannot"),
    "--drop of no column": ("--drop c1", r"--drop c1: no file has such a column or matrix"),
    "--drop of everything": ("--drop b1,b2,b3,b4,b5", r"b\.csv contains no view: --drop leaves"),
    "--transpose of no view": ("--transpose c", r"--transpose c: there is no such view; the views are a, b"),
    "--transpose of a table": ("--transpose a", r"no id in common with a\.csv: its first id is"),
}
OPTIONS = {name: ({}, f"{CALL} {options}", message) for name, (options, message) in WRONG_OPTIONS.items()} | {
    "no --out": ({}, "classify a.csv --labels labels.csv", r"--out DIR is missing"),
    "--view of the ids": (
        {},
        "classify a.csv --labels labels.csv --out out --view v=id",
        r"--view: column 'id' of a\.csv holds the ids",
    ),
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
    "--prefix-sep of nothing": ({}, [*CALL.split(), "--prefix-sep", ""], r"--prefix-sep must not be empty"),
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
