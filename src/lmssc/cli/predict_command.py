"""``lmssc predict``."""

import argparse
from pathlib import Path
from typing import Any

from lmssc.cli.classify_command import add_reading_options, one_line
from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable

EPILOG = """\
examples:
  lmssc predict result/model.lmssc new/image.csv new/text.csv --out new.csv
  lmssc predict result/model.lmssc image=new-image.csv text=new-text.csv --out new.csv
  lmssc predict result/model.lmssc new.parquet --out new.csv

A file is taken for the view of the model that has its name (NAME=FILE says it otherwise), or whose columns
it has; columns may be in another order, and others are left aside. Rows are joined as by 'lmssc classify'.
Columns are read as they were then: a category that was not there is none of those that were, a blank cell is
filled in as it was learned. A sample may lack some of the views, but not all; a view that is in no file is
missing for all samples.
The samples that the model was made with get the labels that they had.

The file that is written has the columns id (by the name that it has in the files), label, confidence,
runner_up, and p_<class> for each class. It cannot be one of the files that are read, not even with --force.

exit codes: 0 it is written; 2 something is wrong with the call or a file (one line says what and
where); 3 the output cannot be written; 130 stopped by Ctrl-C, 143 by SIGTERM: nothing is half-written."""


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "predict",
        help="label new samples with a model that classify wrote",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Label samples that were not there when the model was made, from files like those it was made of.",
        epilog=EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="the file model.lmssc that 'lmssc classify' wrote")
    parser.add_argument("views", nargs="+", metavar="VIEW", help="a file, or NAME=FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the CSV file to write")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    import numpy as np

    import lmssc
    from lmssc.cli.classify_files import predict, read_new_samples
    from lmssc.cli.console import print_json
    from lmssc.core.progress import progress_bar
    from lmssc.io.classify_input import describe_views
    from lmssc.io.staging import refuse_inputs
    from lmssc.io.view_columns import Options, split_argument

    refuse_inputs([args.out], [args.model, *(split_argument(view)[1] for view in args.views)])
    texts = args.format == "text" and not args.quiet
    try:
        model = lmssc.load(args.model)
    except OSError as error:
        raise CommandError(f"{args.model}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(one_line(error)) from error
    try:
        drop = [name.strip() for name in args.drop.split(",") if name.strip()]
        options = Options(id_column=args.id, delimiter=args.delimiter, decimal=args.decimal, drop=drop)
        with progress_bar("reading", show=texts):
            samples = read_new_samples(args.views, model, options)
        if texts:
            print("\n".join([*describe_views(samples.joined, samples.facts), *samples.notes]), flush=True)
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
