"""A small Hub on the loopback interface, for the real client of `huggingface_hub`.

It keeps repositories in memory: commits with ids of their own, branches, pull requests, large files by their SHA-256.
It knows users and tokens, writes down every request, and breaks connections where a test asks for it. Its endpoints are
those that the client (2.4) was seen to ask for; it checks no more of a card than the tests need.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import http.server
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml  # noqa: TID251  (what the client of the Hub reads cards with)

LARGE = (".safetensors", ".parquet", ".onnx", ".bin")
"""What the Hub's .gitattributes put into large storage; beside it, whatever is over `LARGE_BYTES`."""
LARGE_BYTES = 10 * 2**20
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
PREFIXES = {"": "model", "datasets/": "dataset", "spaces/": "space"}
HARDWARE = ("cpu-basic", "cpu-upgrade", "zero-a10g", "t4-small")
SLOW_SEC = 1.3
WHEN = "2026-11-21T12:00:00.000Z"


@dataclasses.dataclass(frozen=True)
class Blob:
    """A file: its bytes, or where they are in large storage."""

    content: bytes = b""
    sha256: str = ""
    large_size: int = 0

    @property
    def size(self) -> int:
        return self.large_size if self.sha256 else len(self.content)

    @property
    def oid(self) -> str:
        content = self.content
        if self.sha256:
            content = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\n".encode()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 (git's own hash)


@dataclasses.dataclass(frozen=True)
class Commit:
    sha: str
    parent: str | None
    title: str
    tree: Mapping[str, Blob]


@dataclasses.dataclass
class PullRequest:
    num: int
    title: str
    author: str
    base: str
    status: str = "open"


class Repo:
    """A repository with its commits and pull requests."""

    numbers = itertools.count()

    def __init__(self, kind: str, name: str, *, private: bool, sdk: str | None) -> None:
        self.kind, self.name, self.private, self.sdk = kind, name, private, sdk
        self.commits: dict[str, Commit] = {}
        self.refs: dict[str, str] = {}
        self.requests: list[PullRequest] = []
        self.hardware: dict[str, str | None] = {"current": None, "requested": "cpu-basic"}
        self.add("main", None, "initial commit", {".gitattributes": Blob(b"*.safetensors filter=lfs\n")})

    def add(self, ref: str, parent: str | None, title: str, tree: Mapping[str, Blob]) -> Commit:
        sha = hashlib.sha1(f"{self.name} {title} {next(self.numbers)}".encode()).hexdigest()  # noqa: S324
        self.commits[sha] = Commit(sha, parent, title, dict(tree))
        self.refs[ref] = sha
        return self.commits[sha]

    def resolve(self, revision: str) -> Commit | None:
        return self.commits.get(self.refs.get(revision, revision))

    @property
    def head(self) -> Commit:
        return self.commits[self.refs["main"]]

    def history(self) -> list[str]:
        """Titles of the commits of main, newest first."""
        titles, commit = [], self.head
        while True:
            titles.append(commit.title)
            if commit.parent is None:
                return titles
            commit = self.commits[commit.parent]


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next requests that match."""

    pattern: str
    action: str
    """``cut``: the connection ends in the middle of the body; ``cut after``: once all is done, without an answer;
    ``hang``: the request is never answered; ``slow``: answered after `SLOW_SEC`; or a status."""
    times: int = 1
    seen: threading.Event = dataclasses.field(default_factory=threading.Event)


@dataclasses.dataclass(frozen=True)
class Asked:
    method: str
    path: str
    status: int

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Refused(Exception):  # noqa: N818 (an answer, not an error of ours)
    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class LocalHub:
    """The server and what it holds.

    Attributes
    ----------
    url
        What HF_ENDPOINT is set to.
    log
        Every request, in order.

    """

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.large: dict[str, bytes] = {}
        self.users: dict[str, dict[str, Any]] = {}
        self.log: list[Asked] = []
        self.faults: list[Fault] = []
        self.free_hardware = {"cpu-basic", "zero-a10g"}
        self.ignored_hardware: set[str] = set()
        """What is granted, and then not given."""
        self.lock = threading.RLock()
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.elsewhere = f"http://localhost:{self.server.server_port}"  # another host, as large storage is
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def add_user(self, name: str, *orgs: str, role: str = "write") -> str:
        """Return the token of a new user."""
        token = f"hf_{hashlib.sha256(f'{name} {role} {len(self.users)}'.encode()).hexdigest()[:30]}"
        self.users[token] = {"name": name, "orgs": list(orgs), "role": role}
        return token

    def fault(self, pattern: str, action: str, times: int = 1) -> Fault:
        fault = Fault(pattern, action, times)
        self.faults.append(fault)
        return fault

    def repo(self, kind: str, name: str) -> Repo:
        return self.repos[kind, name]

    def text(self, kind: str, name: str, path: str, revision: str = "main") -> str:
        commit = self.repo(kind, name).resolve(revision)
        assert commit is not None
        return commit.tree[path].content.decode()

    def put(self, kind: str, name: str, files: Mapping[str, str], title: str = "by hand") -> str:
        """Commit texts without a client; make the repository if there is none."""
        repo = self.repos.setdefault((kind, name), Repo(kind, name, private=False, sdk=None))
        tree = dict(repo.head.tree) | {path: Blob(text.encode()) for path, text in files.items()}
        return repo.add("main", repo.head.sha, title, tree).sha

    def since(self, mark: int) -> list[Asked]:
        return self.log[mark:]


class _Handler(http.server.BaseHTTPRequestHandler):
    hub: LocalHub
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet: else each waits 40 ms for the acknowledgement of its head
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 (names of http.server)

    def _serve(self) -> None:
        address = urlsplit(self.path)
        self.route, self.query = address.path, {key: value[0] for key, value in parse_qs(address.query).items()}
        self.user: dict[str, Any] | None = None
        fault = self._fault()
        if fault is not None and fault.action in {"cut", "hang"}:
            self._break(fault)
            return
        self.body = self._read_body()
        if fault is not None and fault.action == "slow":
            time.sleep(SLOW_SEC)
            fault = None
        if fault is not None and fault.action.isdigit():
            self._refuse(Refused(int(fault.action), "injected"))
            return
        try:
            self._authenticate()
            with self.hub.lock:
                self._mute = fault is not None
                self._dispatch()
        except Refused as refusal:
            self._refuse(refusal)

    def _fault(self) -> Fault | None:
        with self.hub.lock:
            for fault in self.hub.faults:
                if fault.times and re.search(fault.pattern, f"{self.command} {self.route}"):
                    fault.times -= 1
                    return fault
        return None

    def _break(self, fault: Fault) -> None:
        self.hub.log.append(Asked(self.command, self.route, 0))
        self.rfile.read1(1024)  # something has arrived
        fault.seen.set()
        if fault.action == "hang":
            while self.rfile.read1(2**16):  # until the client is gone
                pass
        self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    # answers

    def _answer(self, content: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.hub.log.append(Asked(self.command, self.route, status))
        if getattr(self, "_mute", False):
            self._hang_up()
            return
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._answer(
            json.dumps(content).encode(), status=status, headers={"Content-Type": "application/json", **(headers or {})}
        )

    def _refuse(self, refusal: Refused) -> None:
        headers = {"X-Error-Message": refusal.message} | ({"X-Error-Code": refusal.code} if refusal.code else {})
        self._json({"error": refusal.message}, status=refusal.status, headers=headers)

    # who asks, and for what

    def _authenticate(self) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token:
            self.user = self.hub.users.get(token)
            if self.user is None:
                raise Refused(401, "Invalid credentials in Authorization header")

    def _may_write(self, owner: str) -> bool:
        user = self.user
        return user is not None and user["role"] == "write" and owner in {user["name"], *user["orgs"]}

    def _found(self, kind: str, name: str) -> Repo:
        repo = self.hub.repos.get((kind, name))
        if repo is None or (repo.private and not self._may_write(name.partition("/")[0])):
            raise Refused(404 if self.user else 401, "Repository not found", "RepoNotFound")
        return repo

    def _commit_of(self, repo: Repo, revision: str) -> Commit:
        commit = repo.resolve(unquote(revision))
        if commit is None:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    def _dispatch(self) -> None:
        for pattern, name in _ROUTES:
            found = re.fullmatch(pattern, f"{self.command} {self.route}")
            if found:
                serve: Callable[..., None] = getattr(self, name)
                serve(**found.groupdict())
                return
        raise Refused(404, "Not found")

    # the routes

    def whoami(self) -> None:
        if self.user is None:
            raise Refused(401, "Invalid username or password.")
        orgs = [{"type": "org", "name": org, "roleInOrg": "admin"} for org in self.user["orgs"]]
        token = {"displayName": "test", "role": self.user["role"]}
        self._json({"type": "user", "name": self.user["name"], "orgs": orgs, "auth": {"accessToken": token}})

    def create(self) -> None:
        asked = json.loads(self.body)
        if self.user is None:
            raise Refused(401, "Invalid username or password.")
        owner = asked.get("organization") or self.user["name"]
        if not self._may_write(owner):
            raise Refused(403, f"You don't have the rights to create a {asked.get('type')} under {owner}")
        kind, name = asked.get("type") or "model", f"{owner}/{asked['name']}"
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        answer = {"url": f"{self.hub.url}/{_prefix(kind)}{name}", "name": name, "id": name}
        if (kind, name) in self.hub.repos:
            self._json({**answer, "error": "You already created this repo"}, status=409)
            return
        self.hub.repos[kind, name] = Repo(kind, name, private=private, sdk=asked.get("sdk"))
        self._json(answer)

    def validate(self) -> None:
        asked = json.loads(self.body)
        errors = _card_errors(asked["content"], asked["repoType"])
        content = {"errors": [{"message": error} for error in errors], "warnings": []}
        self._json(content, status=400 if errors else 200)

    def info(self, kind: str, name: str, revision: str = "main") -> None:
        repo = self._found(kind, name)
        commit = self._commit_of(repo, revision)
        self._json(
            {
                "id": name,
                "modelId": name,
                "sha": commit.sha,
                "siblings": [{"rfilename": path} for path in sorted(commit.tree)],
                "private": repo.private,
                "disabled": False,
                "gated": False,
                "tags": [],
                "downloads": 0,
                "likes": 0,
                "sdk": repo.sdk,
                "createdAt": WHEN,
                "lastModified": WHEN,
            }
        )

    def runtime(self, name: str) -> None:
        hardware = self._found("space", name).hardware
        self._json({"stage": "BUILDING", "hardware": hardware, "gcTimeout": None, "replicas": {"requested": 1}})

    def ask_for_hardware(self, name: str) -> None:
        repo, flavor = self._found("space", name), json.loads(self.body)["flavor"]
        if not self._may_write(name.partition("/")[0]):
            raise Refused(403, "only members choose the hardware")
        if flavor not in HARDWARE:
            raise Refused(400, f'"flavor" must be one of [{", ".join(HARDWARE)}]')
        if flavor not in self.hub.free_hardware:
            raise Refused(402, f"Payment required to run a Space on {flavor}")
        if flavor not in self.hub.ignored_hardware:
            repo.hardware["requested"] = flavor
        self.runtime(name)

    def commits(self, kind: str, name: str, revision: str) -> None:
        repo = self._found(kind, name)
        commit: Commit | None = self._commit_of(repo, revision)
        told = []
        while commit is not None:
            told.append({"id": commit.sha, "title": commit.title, "message": "", "authors": [], "date": WHEN})
            commit = repo.commits[commit.parent] if commit.parent else None
        self._json(told)

    def preupload(self, kind: str, name: str, revision: str) -> None:
        repo = self._found(kind, name)
        self._check_commit(repo, revision)
        tree = self._commit_of(repo, revision).tree
        files = []
        for file in json.loads(self.body)["files"]:
            large = file["path"].endswith(LARGE) or file["size"] > LARGE_BYTES
            held = tree.get(file["path"])
            oid = (held.sha256 or held.oid) if held else None
            mode = "lfs" if large else "regular"
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self._json({"files": files})

    def _check_commit(self, repo: Repo, revision: str) -> None:
        if self.user is None or self.user["role"] != "write":
            raise Refused(403 if self.user else 401, "pass a token with the right to write")
        number = unquote(revision).removeprefix("refs/pr/")
        own = number.isdigit() and repo.requests[int(number) - 1].author == self.user["name"]
        if not own and self.query.get("create_pr") != "1" and not self._may_write(repo.name.partition("/")[0]):
            raise Refused(403, "Authorization error: you may open a pull request instead")

    def batch(self, prefix: str, name: str) -> None:
        self._found(PREFIXES[prefix], name)
        objects = []
        for item in json.loads(self.body)["objects"]:
            actions = {
                "upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"},
                "verify": {"href": f"{self.hub.url}/lfs/verify"},
            }
            objects.append(item if item["oid"] in self.hub.large else {**item, "actions": actions})
        self._json({"transfer": "basic", "objects": objects})

    def put_large(self, oid: str) -> None:
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise Refused(400, "the content is not that of its hash")
        self.hub.large[oid] = self.body
        self._answer(b"")

    def verify_large(self) -> None:
        asked = json.loads(self.body)
        if len(self.hub.large.get(asked["oid"], b"")) != asked["size"]:
            raise Refused(404, "not uploaded")
        self._json({})

    def get_large(self, oid: str) -> None:
        self._send_file(self.hub.large[oid], {"ETag": f'"{oid}"'})

    def commit(self, kind: str, name: str, revision: str) -> None:
        repo = self._found(kind, name)
        self._check_commit(repo, revision)
        lines = [json.loads(line) for line in self.body.splitlines()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        branch = unquote(revision)
        parent = self._commit_of(repo, header.get("parentCommit") or branch)
        proposal = self.query.get("create_pr") == "1"
        if not proposal and parent.sha != self._commit_of(repo, branch).sha:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        tree = dict(parent.tree)
        for line in lines:
            self._apply(tree, line["key"], line["value"])
        if "README.md" in tree and (errors := _card_errors(tree["README.md"].content.decode(), kind)):
            raise Refused(400, "; ".join(errors))
        answer = {}
        if proposal:
            assert self.user is not None
            request = PullRequest(len(repo.requests) + 1, header["summary"], self.user["name"], parent.sha)
            repo.requests.append(request)
            branch = f"refs/pr/{request.num}"
            answer["pullRequestUrl"] = f"{self.hub.url}/{_prefix(kind)}{name}/discussions/{request.num}"
        sha = repo.add(branch, parent.sha, header["summary"], tree).sha
        self._json({**answer, "commitOid": sha, "commitUrl": f"{self.hub.url}/{_prefix(kind)}{name}/commit/{sha}"})

    def _apply(self, tree: dict[str, Blob], key: str, value: Mapping[str, Any]) -> None:
        if key == "file":
            tree[value["path"]] = Blob(base64.b64decode(value["content"]))
        elif key == "lfsFile":
            if value["oid"] not in self.hub.large:
                raise Refused(400, f"{value['path']} was not uploaded")
            tree[value["path"]] = Blob(sha256=value["oid"], large_size=value["size"])
        elif key == "deletedFile" and tree.pop(value["path"], None) is None:
            raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")

    def tree(self, kind: str, name: str, revision: str, folder: str = "") -> None:
        repo = self._found(kind, name)
        commit = self._commit_of(repo, revision)
        start = f"{unquote(folder)}/" if folder else ""
        inside = {path: blob for path, blob in commit.tree.items() if path.startswith(start)}
        if start and not inside:
            raise Refused(404, f"{folder} does not exist", "EntryNotFound")
        entries: dict[str, dict[str, Any]] = {}
        for path, blob in sorted(inside.items()):
            parts = path.removeprefix(start).split("/")
            for depth in range(1, len(parts)):
                name_ = start + "/".join(parts[:depth])
                if depth == 1 or self.query.get("recursive") == "true":
                    entries.setdefault(name_, {"type": "directory", "oid": "0" * 40, "size": 0, "path": name_})
            if len(parts) == 1 or self.query.get("recursive") == "true":
                entries[path] = _tree_entry(path, blob)
        self._json(list(entries.values()))

    def paths_info(self, kind: str, name: str, revision: str) -> None:
        commit = self._commit_of(self._found(kind, name), revision)
        if "json" in self.headers.get("Content-Type", ""):
            paths = json.loads(self.body)["paths"]
        else:
            paths = parse_qs(self.body.decode())["paths"]
        found = [_tree_entry(path, commit.tree[path]) for path in paths if path in commit.tree]
        folders = [path for path in paths if any(held.startswith(f"{path}/") for held in commit.tree)]
        self._json([*found, *({"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders)])

    def resolve(self, prefix: str, name: str, revision: str, path: str) -> None:
        commit = self._commit_of(self._found(PREFIXES[prefix], name), revision)
        blob = commit.tree.get(unquote(path))
        if blob is None:
            answer = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit.sha}
            self._json({"error": "Entry not found"}, status=404, headers=answer)
            return
        headers = {"X-Repo-Commit": commit.sha, "ETag": f'"{blob.oid}"'}
        if not blob.sha256:
            self._send_file(blob.content, headers)
            return
        headers |= {
            "X-Linked-Etag": f'"{blob.sha256}"',
            "X-Linked-Size": str(blob.size),
            "Location": f"{self.hub.elsewhere}/lfs/{blob.sha256}",
        }
        self._answer(b"", status=302, headers=headers)

    def _send_file(self, content: bytes, headers: Mapping[str, str]) -> None:
        headers = {"Accept-Ranges": "bytes", **headers}
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not asked:
            self._answer(content, headers=headers)
            return
        size = len(content)
        first = int(asked[1]) if asked[1] else max(size - int(asked[2]), 0)
        last = min(int(asked[2]), size - 1) if asked[1] and asked[2] else size - 1
        if first > last:
            self._answer(b"", status=416, headers={"Content-Range": f"bytes */{size}"})
            return
        span = {"Content-Range": f"bytes {first}-{last}/{size}"}
        self._answer(content[first : last + 1], status=206, headers={**headers, **span})

    def discussions(self, kind: str, name: str) -> None:
        repo = self._found(kind, name)
        wanted = {"status": self.query.get("status"), "author": self.query.get("author")}
        found = [
            self._about(repo, request)
            for request in repo.requests
            if all(value in {None, getattr(request, key)} for key, value in wanted.items())
        ]
        self._json({"discussions": found, "count": len(found), "start": 0})

    def _about(self, repo: Repo, request: PullRequest) -> dict[str, Any]:
        return {
            "num": request.num,
            "title": request.title,
            "status": request.status,
            "author": {"name": request.author},
            "isPullRequest": True,
            "createdAt": WHEN,
            "repo": {"name": repo.name, "type": repo.kind},
        }

    def discussion(self, kind: str, name: str, number: str) -> None:
        repo = self._found(kind, name)
        details = {"events": [], "changes": {"base": "main"}, "filesWithConflicts": [], "diff": ""}
        self._json({**self._about(repo, repo.requests[int(number) - 1]), **details})

    def merge(self, kind: str, name: str, number: str) -> None:
        repo = self._found(kind, name)
        if not self._may_write(name.partition("/")[0]):
            raise Refused(403, "only members merge")
        request = repo.requests[int(number) - 1]
        base, theirs = repo.commits[request.base].tree, repo.commits[repo.refs[f"refs/pr/{number}"]].tree
        tree = dict(repo.head.tree)
        for path in base.keys() | theirs.keys():
            if base.get(path) == theirs.get(path):
                continue
            if tree.get(path) != base.get(path):
                raise Refused(409, f"{path} conflicts")
            tree.pop(path, None)
            tree |= {path: theirs[path]} if path in theirs else {}
        repo.add("main", repo.head.sha, request.title, tree)
        request.status = "merged"
        self._json({})

    def tag(self, kind: str, name: str, revision: str) -> None:
        repo = self._found(kind, name)
        repo.refs[json.loads(self.body)["tag"]] = self._commit_of(repo, revision).sha
        self._json({})


_ID = r"(?P<name>[^/]+/[^/]+)"
_API = rf"/api/(?P<kind>model|dataset|space)s/{_ID}"
_PAGE = rf"/(?P<prefix>datasets/|spaces/|){_ID}"
_ROUTES = [
    (r"GET /api/whoami-v2", "whoami"),
    (r"POST /api/repos/create", "create"),
    (r"POST /api/validate-yaml", "validate"),
    (rf"GET /api/spaces/{_ID}/runtime", "runtime"),
    (rf"POST /api/spaces/{_ID}/hardware", "ask_for_hardware"),
    (rf"GET {_API}", "info"),
    (rf"GET {_API}/revision/(?P<revision>[^/]+)", "info"),
    (rf"POST {_API}/preupload/(?P<revision>[^/]+)", "preupload"),
    (rf"POST {_API}/commit/(?P<revision>[^/]+)", "commit"),
    (rf"GET {_API}/commits/(?P<revision>[^/]+)", "commits"),
    (rf"GET {_API}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?", "tree"),
    (rf"POST {_API}/paths-info/(?P<revision>[^/]+)", "paths_info"),
    (rf"GET {_API}/discussions", "discussions"),
    (rf"GET {_API}/discussions/(?P<number>\d+)", "discussion"),
    (rf"POST {_API}/discussions/(?P<number>\d+)/merge", "merge"),
    (rf"POST {_API}/tag/(?P<revision>[^/]+)", "tag"),
    (r"POST /lfs/verify", "verify_large"),
    (r"PUT /lfs/(?P<oid>[0-9a-f]{64})", "put_large"),
    (r"(?:GET|HEAD) /lfs/(?P<oid>[0-9a-f]{64})", "get_large"),
    (rf"POST {_PAGE}\.git/info/lfs/objects/batch", "batch"),
    (rf"(?:GET|HEAD) {_PAGE}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
]


def _prefix(kind: str) -> str:
    return next(prefix for prefix, name in PREFIXES.items() if name == kind)


def _tree_entry(path: str, blob: Blob) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "oid": blob.oid, "size": blob.size, "path": path}
    if blob.sha256:
        entry["lfs"] = {"oid": blob.sha256, "size": blob.size, "pointerSize": 134}
    return entry


def _card_errors(card: str, kind: str) -> list[str]:
    """Return what the Hub would find wrong with the head of a card, as far as the tests need it."""
    found = re.match(r"\ufeff?\s*---\r?\n(.*?)\r?\n---(\r?\n|$)", card, re.DOTALL)
    try:
        head = yaml.safe_load(found[1]) if found else {}
    except yaml.YAMLError as error:
        return [f"invalid YAML: {error}"]
    errors = []
    if kind == "space" and head.get("colorFrom", "red") not in COLOURS:
        errors.append('"colorFrom" must be one of [red, yellow, green, blue, indigo, purple, pink, gray]')
    if not isinstance(head.get("license", ""), str):
        errors.append('"license" must be a string')
    if head.get("license") == "no-such-licence":
        errors.append('"license" must be one of the ids of the list')
    if any("name" not in model for model in head.get("model-index") or []):
        errors.append('"model-index[0].name" is required')
    return errors
