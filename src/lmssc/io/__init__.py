"""Views and labels in files, for ``lmssc classify`` and ``lmssc predict``.

`formats` reads one file into a `Table`, `views` makes views of tables, `join` brings their rows together, `labels`
finds the labels, `outputs` writes what was found. Nothing that is read is ever run: no pickle.
"""
