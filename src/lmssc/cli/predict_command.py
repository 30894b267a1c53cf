"""``lmssc predict``: its options, and what it prints."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.cli.shared_options import EXIT_CODES, add_command, add_graphs, add_reading, one_line, split_names
from lmssc.cli.view_files import naming_files
from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable

DESCRIPTION = "Label new samples with a model, from files like those that the model was fitted to."
EPILOG = f"""\
examples:
  lmssc predict result/model.lmssc new/image.csv new/text.csv --out new.csv
  lmssc predict result/model.lmssc image=new-image.csv text=new-text.csv --out new.csv
  lmssc predict result/model.lmssc new.parquet --out new.csv

A file belongs to the view of the same name (or NAME=FILE), otherwise to the view with the same columns.
Columns may come in any order; additional columns are ignored. Rows are joined, and columns are read, as by
'lmssc classify'. A category that the model has not seen counts as none of the known ones, and a blank cell
among numbers is filled in with the value learned by the fit. A sample may lack some of the views, but not
all; a view without a file is missing for all samples. If a sample of the fit comes again with all its views
and links, it gets the same label as in the fit.

A model with links (--graph of 'lmssc classify') also takes the links of new samples: a table with the columns
source and target, the ids of a new and of a known sample in either order, or a matrix with a row for each new
and a column for each known sample. Links between new samples are not used. A sample may have no links.

The output has the columns id (under its name in the files), label, confidence, runner_up, p_<class> for
each class, and novelty: a p-value, small for samples unlike every class. The output never replaces an input
file, not even with --force.

{EXIT_CODES}"""


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    about = "label new samples with a model that classify wrote"
    parser = add_command(commands, "predict", run=run, help=about, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("model", metavar="MODEL", help="model file written by 'lmssc classify'")
    parser.add_argument("views", nargs="+", metavar="VIEW", help="a file, or NAME=FILE")
    add_graphs(parser, "links of the new samples to those of the model")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="CSV file to write")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    import numpy as np

    import lmssc
    from lmssc.cli.console import print_json
    from lmssc.cli.predict_run import predict, read_new_samples
    from lmssc.core.progress import progress_bar
    from lmssc.io.labelled_files import describe_views
    from lmssc.io.options import Options
    from lmssc.io.sources import split_argument
    from lmssc.io.staging import refuse_inputs

    refuse_inputs([args.out], [args.model, *(split_argument(view)[1] for view in [*args.views, *args.graph])])
    texts = args.format == "text" and not args.quiet
    try:
        model = lmssc.load(args.model)
    except OSError as error:
        raise CommandError(f"{args.model}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(one_line(error)) from error
    try:
        options = Options(
            id_column=args.id, delimiter=args.delimiter, decimal=args.decimal, drop=split_names(args.drop)
        )
        with progress_bar("reading", show=texts):
            samples = read_new_samples(args.views, model, options, args.graph)
        if texts:
            print("\n".join([*describe_views(samples.joined, samples.facts), *samples.notes]), flush=True)
        with naming_files({fact.name: fact.path for fact in samples.facts}):
            labels = predict(model, samples, args.out, force=args.force, show=texts)
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(one_line(error)) from error
    except MemoryError as error:
        raise CommandError("not enough memory for these files") from error
    classes, counts = np.unique(labels.astype(str), return_counts=True)
    found = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    if texts:
        print(f"Labels: {', '.join(f'{name} ({count:,})' for name, count in found.items())}.")
        print(f"Written to {args.out}.")
    elif not args.quiet:
        data = {
            "samples": len(labels),
            "found_per_class": found,
            "notes": samples.notes,
            "files": [readable(str(args.out))],
        }
        print_json(data)
    return 0
