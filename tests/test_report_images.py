"""Images and texts in the map of a report: what `--show` names, small, in one file, and nothing that is no image."""

import base64
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lmssc import LMSSC
from lmssc.cli import main
from lmssc.datasets import make_multiview
from lmssc.report import sample_details, write_report

N = 40


@pytest.fixture(scope="module")
def fitted():
    data = make_multiview(N, labelled=0.3, random_state=0)
    return LMSSC(max_iter=2).fit(data.views, data.y)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(N):
        Image.new("RGB", (400, 300), (6 * i, 100, 100)).save(folder / f"{i}.jpg")
    return folder


def details_of(tmp_path, clf, details):
    """What the page has of each dot, and its text on one line."""
    write_report(tmp_path / "report.html", clf, details=details)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="map-data">(.*?)</script>', text, flags=re.DOTALL)[1])
    return {int(dot): dict(parts) for dot, parts in data["details"].items()}, " ".join(text.split())


def content_of(part):
    media_type, content = re.fullmatch(r"data:(image/[a-z]+);base64,(.+)", part["image"]).groups()
    return media_type, base64.b64decode(content)


def test_a_photo_becomes_small_and_keeps_no_metadata(tmp_path, fitted):
    photo = Image.effect_noise((3000, 1500), 50).convert("RGB")
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = "taken at home", 6  # ImageDescription; Orientation: on its side
    photo.save(tmp_path / "a.jpg", exif=exif)
    found, _ = details_of(
        tmp_path, fitted, lambda row: {"photo": tmp_path / "a.jpg", "body": "<b>"} if row == 3 else {}
    )
    assert list(found) == [3]
    assert found[3]["body"] == "<b>"
    media_type, content = content_of(found[3]["photo"])
    assert media_type == "image/jpeg"
    assert b"taken at home" not in content
    assert len(content) < 20_000
    assert Image.open(io.BytesIO(content)).size == (96, 192)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK", "I;16"])
def test_images_of_every_kind(tmp_path, mode):
    grey = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 900)
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    (grey if mode == "I;16" else Image.new(mode, (8, 8))).save(path)
    media_type, content = sample_details._thumbnail(path)
    shown = Image.open(io.BytesIO(content))
    assert media_type == "image/png"
    assert shown.size == (8, 8)
    assert mode != "I;16" or np.asarray(shown).max() == 255


def test_the_least_certain_come_first_when_there_is_no_room_for_all(tmp_path, fitted, photos, monkeypatch):
    one = len(content_of({"image": sample_details._Pictures(10**6).take(photos / "0.jpg")})[1])
    monkeypatch.setattr(sample_details, "MAX_PICTURES", 9 * one + one // 2)
    found, text = details_of(tmp_path, fitted, lambda row: {"photo": photos / f"{row}.jpg"})
    sure = fitted.label_distributions_.max(axis=1)
    listed = set(fitted.most_informative(20).tolist())
    order = sorted(range(N), key=lambda row: (row not in listed, sure[row]))
    assert set(found) == set(order[: len(found)])
    assert 8 <= len(found) <= 12
    assert (
        f"Pictures of {len(found)} samples are on the page, the least certain first; the other {N - len(found)}" in text
    )


def test_only_images_are_taken_whatever_their_names(tmp_path, fitted, monkeypatch):
    (tmp_path / "a.png").write_text("<html><script>alert(1)</script></html>")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    monkeypatch.setattr(sample_details, "MAX_PIXELS", 100)
    Image.new("1", (20, 20)).save(tmp_path / "c.png")  # a few bytes that would take much memory
    files = [tmp_path / f"{name}.png" for name in "abcd"]  # d.png does not exist
    found, text = details_of(tmp_path, fitted, lambda row: {"photo": files[row]} if row < 4 else {})
    assert found == {}
    assert "alert" not in text
    assert "4 files are left out: they are no images." in text


def test_without_pillow_small_files_are_taken_as_they_are(tmp_path, fitted, monkeypatch):
    Image.new("L", (8, 8)).save(tmp_path / "a.gif")
    Image.effect_noise((400, 400), 90).save(tmp_path / "b.png")
    (tmp_path / "c.jpg").write_text("<svg onload='alert(1)'/>")
    monkeypatch.setitem(sys.modules, "PIL", None)
    files = [tmp_path / "a.gif", tmp_path / "b.png", tmp_path / "c.jpg"]
    found, text = details_of(tmp_path, fitted, lambda row: {"photo": files[row]} if row < 3 else {})
    assert {dot: content_of(parts["photo"]) for dot, parts in found.items()} == {
        0: ("image/gif", files[0].read_bytes())
    }
    assert "2 files are left out: they are no images of up to 64 kB." in text


@pytest.fixture
def files(tmp_path, monkeypatch, photos):
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).normal(np.arange(N)[:, None] % 2, size=(N, 2)).round(3)
    labels = ["ab"[i % 2] if i < 10 else "" for i in range(N)]
    rows = [f"{i},{x},{y},word{i} of a text,{labels[i]}\n" for i, (x, y) in enumerate(numbers)]
    Path("all.csv").write_text("id,x,y,body,label\n" + "".join(rows))
    (photos / "1.jpg").unlink()
    (tmp_path / "secret.jpg").write_bytes((photos / "2.jpg").read_bytes())
    (photos / "2.jpg").unlink()
    os.symlink(tmp_path / "secret.jpg", photos / "2.jpg")


def test_classify_shows_what_is_asked_for(files, capsys):
    call = [
        "classify",
        "all.csv",
        "--drop",
        "body",
        "--show",
        "image=photos/{id}.jpg",
        "--show",
        "text=body",
        "--out",
        "out",
    ]
    assert main(call) == 0
    said = capsys.readouterr().out
    assert "--show image=photos/{id}.jpg: no such file for 2 of the 40 samples, for example '1'." in said
    text = Path("out/report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="map-data">(.*?)</script>', text, flags=re.DOTALL)[1])
    found = {data["ids"][int(dot)]: dict(parts) for dot, parts in data["details"].items()}
    assert {key for key, parts in found.items() if "image" in parts} == {str(i) for i in range(N)} - {"1", "2"}
    assert found["7"]["body"] == "word7 of a text"
    assert set(found["2"]) == {"body"}


@pytest.mark.parametrize(
    ("show", "message"),
    [
        ("audio=photos/{id}.jpg", "a report has no sounds"),
        ("image=photos/a.jpg", r"name the files with \{id\}"),
        ("image=nowhere/{id}.jpg", "there is no folder nowhere"),
        ("text=story", "no file has a column 'story'"),
        ("video=photos/{id}.mp4", "must be KIND=WHAT"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_the_fit(files, capsys, show, message):
    assert main(["classify", "all.csv", "--show", show, "--out", "out"]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not Path("out").exists()
