"""Nobody else gets in: token, Host, Origin, sizes, and paths and links that lead out of the folder."""

import asyncio
import json
import os

import pytest

pytest.importorskip("starlette")

from lmssc.studio.security import MAX_BODY, PAGE_POLICY, Access
from small_files import table_text
from studio_client import HOST, PORT, TOKEN, get, make_studio, request, write_samples

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
SECRET = b"the secret"


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    path, _ = write_samples(folder)
    made = make_studio(path, folder / "out")
    yield made
    made.close()


PATHS = [
    "/",
    "/page/studio.js",
    "/api/state",
    "/api/next",
    "/api/export",
    "/api/map",
    "/media/0",
    "/health",
    "/nothing",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "тoken"])
def test_without_the_token_nothing_answers(studio, path, token):
    for given in (
        {"token": None, "query": {} if token is None else {"token": token}},
        {"token": None, "headers": {"authorization": f"Bearer {(token or '').encode().decode('latin-1')}"}},
        {"token": None, "headers": {"authorization": f"Basic {TOKEN}"}},
        {"token": None, "query": f"token={TOKEN}&token={TOKEN}"},
    ):
        found = request(studio.app, "GET", path, **given)
        assert found.status == 401
        assert b"samples" not in found.content
    assert request(studio.app, "GET", f"/t/{token or 'x'}{path}", token=None).status == 401


def test_the_token_works_in_the_header_the_query_and_the_path(studio):
    assert request(studio.app, "GET", "/api/state").status == 200
    assert request(studio.app, "GET", "/api/state", token=None, query={"token": TOKEN}).status == 200
    assert request(studio.app, "GET", f"/t/{TOKEN}/api/state", token=None).status == 200


def test_tokens_cannot_be_guessed():
    tokens = {Access().token for _ in range(50)}
    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 43
    assert "token" not in repr(Access())


HOSTS = [
    "evil.example",
    f"evil.example:{PORT}",
    "127.0.0.1",
    "127.0.0.1:80",
    f"127.0.0.1.evil.example:{PORT}",
    f"localhost.evil.example:{PORT}",
    f"127.0.0.1:{PORT}@evil.example",
    f"evil.example#127.0.0.1:{PORT}",
    "",
    f"[::2]:{PORT}",
    f"0.0.0.0:{PORT}",
    f"127.0.0.1.nip.io:{PORT}",
    f"rebind.it:{PORT}",
    f"2130706433:{PORT}",
    f"0x7f.1:{PORT}",
    f"[::ffff:127.0.0.1]:{PORT}",
    f"127.0.0.1:{PORT}, evil.example",
    f"localhost.:{PORT}",
]


@pytest.mark.parametrize("host", HOSTS)
def test_foreign_hosts_are_refused_also_with_the_token(studio, host):
    assert request(studio.app, "GET", "/api/state", headers={"host": host}).status == 403


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_this_machine_is_allowed(studio, host):
    assert request(studio.app, "GET", "/api/state", headers={"host": host}).status == 200


def test_a_public_server_takes_literal_addresses_and_its_own_name_only():
    access = Access("t", host="0.0.0.0", port=PORT)
    assert access.allows_host(f"192.168.1.5:{PORT}")
    assert access.allows_host(f"[fe80::1]:{PORT}")
    assert not access.allows_host(f"evil.example:{PORT}")
    assert not access.allows_host("192.168.1.5:80")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://" + HOST, f"http://localhost:{PORT + 1}", "http://127.0.0.1", "file://",
     f"http://{HOST}.evil.example", f"http://evil.example/{HOST}", "", "chrome-extension://abc"],
)  # fmt: skip
def test_other_origins_are_refused_also_with_the_token(studio, origin):
    for method, path, body in (("GET", "/api/state", None), ("POST", "/api/undo", {})):
        assert request(studio.app, method, path, body=body, headers={"origin": origin}).status == 403


def test_the_own_origin_is_allowed_and_there_is_no_cors(studio):
    found = request(studio.app, "POST", "/api/undo", body={}, headers={"origin": f"http://{HOST}"})
    assert found.status == 200
    assert not [name for name in found.headers if name.startswith("access-control")]
    assert request(studio.app, "OPTIONS", "/api/label", headers={"origin": "http://evil.example"}).status == 403


def test_forms_of_other_pages_cannot_post(studio):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        found = request(studio.app, "POST", "/api/undo", body={}, headers={"content-type": kind})
        assert found.status == 415
    assert request(studio.app, "POST", "/api/undo", body={}, headers={"sec-fetch-site": "cross-site"}).status == 403


@pytest.mark.parametrize("path", ["/", "/page/studio.css", "/api/state", "/nothing"])
def test_every_answer_has_the_headers_that_lock_the_page(studio, path):
    headers = request(studio.app, "GET", path).headers
    assert headers["content-security-policy"] == PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"


def test_the_page_has_no_inline_script_or_style(studio):
    page = request(studio.app, "GET", "/").content.decode()
    assert "<style" not in page
    assert "style=" not in page
    assert "onclick" not in page
    assert page.count("<script") == page.count("<script src=") == 2


# ---- sizes


def test_a_body_of_100_mb_is_refused_by_its_header(studio):
    headers = {"content-length": str(100 * 2**20)}
    found = request(studio.app, "POST", "/api/label", chunks=iter([b"x" * 2**20] * 100), headers=headers)
    assert found.status == 413
    assert found.taken == 0


def test_a_body_of_100_mb_without_a_length_is_cut_off(studio):
    found = request(studio.app, "POST", "/api/label", chunks=iter([b"x" * 2**20] * 100))
    assert found.status == 413
    assert found.taken <= MAX_BODY + 2**20


@pytest.mark.parametrize("length", ["abc", "1e9", ""])
def test_odd_lengths_are_refused(studio, length):
    assert request(studio.app, "POST", "/api/label", body={}, headers={"content-length": length}).status == 400


def test_a_body_that_does_not_arrive_is_not_waited_for(studio, monkeypatch):
    monkeypatch.setattr("lmssc.studio.security.BODY_SECONDS", 0.02)

    def slowly():
        while True:
            yield b" "

    found = request(studio.app, "POST", "/api/label", chunks=slowly(), pause=0.005)
    assert found.status == 408


@pytest.fixture
def talk(studio, monkeypatch, loopback):
    """A function that sends bytes over a connection, and returns all that comes until the server closes it."""
    uvicorn = pytest.importorskip("uvicorn")
    from uvicorn.server import ServerState

    from lmssc.studio import connection

    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.05)
    config = uvicorn.Config(studio.app, access_log=False, log_config=None)
    config.load()

    async def send(sent, seconds):
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: connection.PromptConnection(config, ServerState(), {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(sent)
        try:
            return await asyncio.wait_for(reader.read(), seconds)
        finally:
            writer.close()
            server.close()

    return lambda sent, seconds=20: asyncio.run(send(sent, seconds))


HALF = b"GET / HTTP/1.1\r\nHost: x"
WHOLE = f"GET /api/state HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


def test_half_a_request_does_not_hold_a_connection(talk):
    assert talk(b"") == talk(HALF) == b""
    assert talk(WHOLE).startswith(b"HTTP/1.1 200 ")
    assert talk(WHOLE + HALF).startswith(b"HTTP/1.1 200 ")
    assert talk(WHOLE + WHOLE).count(b"HTTP/1.1 200 ") == 2


def test_a_server_without_the_hooks_answers_without_a_time_limit(talk, monkeypatch):
    from lmssc.studio import connection

    monkeypatch.setattr(connection, "H11Protocol", object)  # what a release without `on_response_complete` looks like
    ended = WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert talk(ended).startswith(b"HTTP/1.1 200 ")
    with pytest.raises(TimeoutError):
        talk(HALF, seconds=0.3)


# ---- files

# Ids, and what they would lead to if they were pasted into a path.
TRAVERSALS = [
    "../secret",
    "../../secret",
    "..",
    ".",
    "/",
    "",
    "./../secret",
    "a/../../secret",
    "a/../b",
    "//etc/passwd",
    "/etc/passwd",
    "..\\secret",
    "..\\..\\secret",
    "a\\..\\..\\secret",
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "..%2fsecret",
    "..%252fsecret",
    "%c0%ae%c0%ae/secret",
    "..%c0%afsecret",
    "..;/secret",
    "....//secret",
    "..././secret",
    "...\\.\\secret",
    "\u2025/secret",
    "\uff0e\uff0e/secret",
    "..\uff0fsecret",
    "\u2024\u2024/secret",
    "../secret\x00",
    "../secret\x00.png",
    "secret.png\x00",
    "~/secret",
    "~root/secret",
    "$HOME/secret",
    "${HOME}/secret",
    "`id`",
    "C:\\secret",
    "C:secret",
    "\\\\host\\share\\secret",
    "file:///etc/passwd",
    "a/./../../secret",
    "../img/../secret",
    "./",
    "a//../../secret",
    " ../secret",
    "../secret ",
    "link",
    "linked/secret",
    "dir",
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures in a folder, a secret beside it, links out of it, and samples whose ids try to get there."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "img" / "sub").mkdir(parents=True)
    (folder / "away").mkdir()
    for name in ("secret", "secret.png", "secret.txt", "away/secret.png"):
        (folder / name).write_bytes(SECRET)
    for name in ("good", "sub/deep", "ünï 名"):
        (folder / "img" / f"{name}.png").write_bytes(PNG)
    (folder / "img" / "inner.png").symlink_to(folder / "img" / "good.png")
    (folder / "img" / "link.png").symlink_to(folder / "secret.png")
    (folder / "img" / "linked").symlink_to(folder / "away")
    (folder / "img" / "dir.png").mkdir()
    (folder / "img" / "page.html").write_bytes(b"<script>alert(1)</script>")
    os.mkfifo(folder / "img" / "pipe.png")
    ids = ["good", "sub/deep", "ünï 名", "inner", "pipe", *(one for one in TRAVERSALS if "\x00" not in one)]
    ids = list(dict.fromkeys(one.strip() for one in ids if one.strip()))
    (folder / "samples.csv").write_text(table_text(["id", "x", "y"], [[key, i, i * i] for i, key in enumerate(ids)]))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        shows = ["image=img/{id}.png", "text=img/{id}.txt", "image=img/{id}"]
        made = make_studio(folder / "samples.csv", folder / "out", shows=shows)
        yield made
    made.close()


def test_there_are_forty_spellings():
    assert len(set(TRAVERSALS)) >= 40


@pytest.mark.parametrize("key", ["good", "sub/deep", "ünï 名", "inner"])
def test_files_in_the_folder_are_shown(pictures, key):
    found = request(pictures.app, "GET", "/media/0", query={"id": key})
    assert (found.status, found.content, found.headers["content-type"]) == (200, PNG, "image/png")
    assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("key", [*TRAVERSALS, "pipe", "nobody"])
def test_no_id_leads_out_of_the_folder(pictures, key, number):
    found = request(pictures.app, "GET", f"/media/{number}", query={"id": key})
    assert found.status == 404
    assert SECRET not in found.content
    if key in pictures.session.rows:
        shown = json.dumps(get(pictures.app, "/api/next", id=key))
        assert SECRET.decode() not in shown


@pytest.mark.parametrize(
    "path",
    [
        "/page/../api.py",
        "/page/..%2fapi.py",
        "/page/studio.html",
        "/page/",
        "/page/%2e%2e/__init__.py",
        "/media/../../etc/passwd",
        "/media/-1",
        "/media/99",
        "/media/0/../1",
        "//etc/passwd",
        "/page/sample_map.js/../studio.html",
    ],
)
def test_no_path_leads_out_of_the_page(pictures, path):
    found = request(pictures.app, "GET", path, query={"id": "good"})
    assert found.status == 404
    assert b"import" not in found.content


def test_columns_that_name_files_are_held_back_too(tmp_path, monkeypatch):
    (tmp_path / "img").mkdir()
    (tmp_path / "secret.png").write_bytes(SECRET)
    (tmp_path / "img" / "a.png").write_bytes(PNG)
    rows = [[i, i * i, i % 3, name] for i, name in enumerate(["a.png", "../secret.png", "/etc/passwd", "a.png"] * 3)]
    (tmp_path / "samples.csv").write_text(table_text(["id", "x", "y", "file"], rows))
    monkeypatch.chdir(tmp_path)
    studio = make_studio(tmp_path / "samples.csv", tmp_path / "out", shows=["image=img/{file}"])
    statuses = [request(studio.app, "GET", "/media/0", query={"id": str(i)}).status for i in range(4)]
    assert statuses == [200, 404, 404, 200]
    studio.close()
