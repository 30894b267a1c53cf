"""Views and labels in files, for ``lmssc classify`` and ``lmssc predict``.

`formats` reads one file into a `Table`; `sources` finds its columns of ids and labels; `view_plans` decides which
columns make which view, and `file_views` makes it; `join` aligns the rows; `label_files` finds the labels;
`labelled_files` does all of that. `match_model` makes the views of a model from new files. `outputs` and `staging`
write the results. No file is ever executed: no pickle.
"""
