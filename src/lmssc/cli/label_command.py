"""``lmssc label``: a page on this machine that shows samples and takes labels."""

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lmssc.cli.column_options import add_columns, check_columns, label_files, read_options
from lmssc.cli.shared_options import add_command, add_graphs, add_reading, add_repeated, add_show, one_line, split_names
from lmssc.io.errors import CommandError
from lmssc.persistence.atomic import readable
from lmssc.persistence.signals import until_stopped

DESCRIPTION = """\
Label your samples in the browser, on this machine. The page asks for the samples whose labels help
most, and can start without any label. Nothing is sent anywhere. Needs pip install 'lmssc[studio]'."""
EPILOG = """\
examples:
  lmssc demo --files digits
  lmssc label digits/views/* --show 'image=digits/images/{id}.png'
      label digits, starting with no labels; type each class when you first see it
  lmssc label reviews.csv --show text=body --classes good,bad
      show the column "body", and begin with two classes
  lmssc label features.csv --show 'image=photos/{id}.jpg' --labels labels.csv --out session
      show photos; start with the labels in labels.csv
  lmssc label features.csv --annotators ann,bob
      two people; one sample in five is shown to both, and the page says how well they agree
  lmssc classify reviews.csv --labels lmssc-labels/labels.csv --out result
      afterwards, use the labels: classify reads labels.csv as it is

the page:
  It shows the sample whose label would help most, what the model predicts for it, and the labelled samples behind
  that prediction. Press a digit or letter to choose a class (each button shows its key; the class "3" has the key
  3), u to undo the last answer, s to skip, n for "none of these", ? for all keys. Every label updates all predictions
  at once; a full fit runs in the background.

what is shown:
  --show image=..., text=... or audio=... names a column, or files with {id} or {column} in their name. Files come
  from that folder only; links out of it are not followed. Without --show, the page shows the columns of the files.

nothing is lost:
  Each answer is saved in DIR/answers.sqlite before the page confirms it. Stop with Ctrl-C, and run the command again
  to continue; at the end DIR/labels.csv has the labels. The page also exports for Label Studio and Argilla.

nobody else gets in:
  The server listens on this machine only, and each request needs the token in the address. --host lets other
  machines in; it needs --i-know-it-is-public, and the token is then sent unencrypted.

programs:
  The API is described at https://github.com/lmssc/lmssc/blob/main/docs/guide/studio.md. For Label Studio, add the
  printed "ML backend" address, named lmssc, to a project whose tasks have the ids of the samples as data.id."""


def add(commands: Any) -> None:
    """Describe the command to the parser."""
    about = "label your samples in the browser; every label updates all predictions at once"
    parser = add_command(commands, "label", run=run, help=about, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("views", nargs="+", metavar="VIEW", help="a file, or NAME=FILE; see 'lmssc classify --help'")
    add_repeated(parser, "--labels", "FILE", "labels that you already have; may be repeated")
    add_graphs(parser, "links between the samples")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("lmssc-labels"),
        metavar="DIR",
        help="folder for the answers (default: %(default)s)",
    )
    add_show(parser, "what to show for a sample, such as 'image=photos/{id}.jpg', text=body or 'audio=clips/{id}.wav'")
    parser.add_argument(
        "--classes", type=readable, default="", metavar="NAMES", help="classes to begin with, separated by commas"
    )
    parser.add_argument(
        "--annotators",
        type=readable,
        default="",
        metavar="NAMES",
        help="names of the people who label, separated by commas",
    )
    answers = "answers from elsewhere: .csv, .json of Label Studio or .jsonl of Argilla; may be repeated"
    add_repeated(parser, "--import", "FILE", answers, dest="imports", type=Path)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port of the server (default: any free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, but open no browser")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument("--i-know-it-is-public", action="store_true", help="let other machines reach the server")
    add_columns(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    """Carry it out."""
    from lmssc.studio.server import check_host

    check_columns(args)
    check_host(args.host, allowed=args.i_know_it_is_public)
    if not 0 <= args.port < 65536:
        raise CommandError(f"--port must be from 0 to 65535; got {args.port}")
    try:
        return _label(args)
    except (ValueError, TypeError, ImportError) as error:
        raise CommandError(one_line(error)) from error


def _classify_command(args: argparse.Namespace) -> str:
    """The command that labels all samples with the labels of this session, from the same columns of the same files."""
    # labels.csv has all labels: the column that had some of them must not become a feature.
    drop = ",".join(filter(None, [args.drop, args.label_column]))
    options = {
        "--graph": args.graph,
        "--view": args.view,
        "--views": args.matrices,
        "--prefix-sep": args.prefix_sep,
        "--transpose": args.transpose,
        "--type": args.type,
        "--impute": "" if args.impute == "median" else args.impute,
        "--id": args.id,
        "--drop": drop,
        "--delimiter": args.delimiter,
        "--decimal": args.decimal,
        "--show": [show for show in args.show if not show.strip().startswith("audio")],
        "--labels": str(args.out / "labels.csv"),
        "--out": "result",
    }
    words = [
        word
        for name, value in options.items()
        for one in (value if isinstance(value, list) else [value])
        if one
        for word in (name, one)
    ]
    return shlex.join(["lmssc", "classify", *args.views, *words])


def _label(args: argparse.Namespace) -> int:
    """Read the files, open the session, and serve it until it is stopped."""
    from lmssc.io.files_to_label import read_files_to_label
    from lmssc.io.labelled_files import describe_views
    from lmssc.studio.server import StudioOptions, listen, open_studio, opened_browser, serve

    options = read_options(args)
    data = read_files_to_label(args.views, label_files(args), options, args.unlabelled, args.graph)
    with listen(args.host, args.port) as listening:
        studio = open_studio(
            data,
            StudioOptions(
                out=args.out,
                shows=args.show,
                classes=split_names(args.classes),
                annotators=split_names(args.annotators),
                imports=args.imports,
                host=args.host,
                port=listening.getsockname()[1],
                impute=options.impute,
            ),
        )
        try:
            if not args.quiet:
                print("\n".join([*describe_views(data.joined, data.facts), *data.notes]))
            access = studio.access
            print(f"Label here:  {access.address}")
            for name in split_names(args.annotators):
                print(f"  as {name}:  {access.address}&annotator={quote(name)}")
            print(f"ML backend:  {access.base}/t/{access.token}  (for Label Studio)")
            print("Stop with Ctrl-C; nothing is lost.", flush=True)
            with until_stopped(), opened_browser(access, args.out, wanted=not args.no_browser):
                serve(studio, listening)
        finally:
            ended = studio.close()
    if not args.quiet:
        n_labels = len(studio.session.labels())
        print(f"\n{n_labels:,} labels in {args.out / 'labels.csv'}; all answers in {args.out / 'answers.sqlite'}.")
        print(f"Use them: {_classify_command(args)}")
    if not ended:  # Python would wait for the fit, or fall over it
        sys.stdout.flush()
        os._exit(0)
    return 0
