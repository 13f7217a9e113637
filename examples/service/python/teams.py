"""Teams: a resource service in Python's standard library, which keeps its resources in SQLite.

python3 teams.py [--port 9310] [--file teams.db] [--restored]

It keeps each promise of schema/service/v1/resource.proto. See docs/services.md.
"""

import argparse
import json
import pathlib
import sqlite3
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int, default=9310)
arguments.add_argument("--file", default="teams.db")
arguments.add_argument("--restored", action="store_true", help="the file is a backup that was put back")
arguments = arguments.parse_args()

db = sqlite3.connect(arguments.file, check_same_thread=False, isolation_level=None)
db.executescript("""
    pragma journal_mode = wal;
    create table if not exists team (namespace text, name text, resource text, primary key (namespace, name));
    create table if not exists change (number integer primary key autoincrement, namespace text, name text);
    create table if not exists history (id text);
    insert into history select hex(randomblob(8)) where not exists (select 1 from history);
""")
if arguments.restored:  # the numbers of changes are given again, so they count in another history
    db.execute("update history set id = hex(randomblob(8))")
HISTORY = db.execute("select id from history").fetchone()[0]
lock = threading.Condition()  # one call at a time; those that wait for changes are woken by each


def find(key):
    """Returns the resource under a key, or None."""
    place = (key.get("namespace", ""), key.get("name", ""))
    row = db.execute("select resource from team where namespace = ? and name = ?", place).fetchone()
    return json.loads(row[0]) if row and key.get("kind") == "Team" else None


def newest():
    """Returns the number of the newest change."""
    return db.execute("select coalesce(max(number), 0) from change").fetchone()[0]


def store(key, resource):
    """Stores a resource, or removes it if it is None. The change is noted in the same transaction."""
    place = (key.get("namespace", ""), key["name"])
    with db:  # commits, or rolls back
        db.execute("begin immediate")
        db.execute("insert into change (namespace, name) values (?, ?)", place)
        if resource is None:
            db.execute("delete from team where namespace = ? and name = ?", place)
        else:
            resource["tag"] = f"{HISTORY}-{newest()}"  # each change has a number of its own
            db.execute("insert or replace into team values (?, ?, ?)", (*place, json.dumps(resource)))
    lock.notify_all()


def describe(request, user):
    kind = {"kind": "Team", "changes": True, "writes": True, "conditional": True, "dryRun": True}
    sdl = pathlib.Path(__file__).with_name("teams.graphqls").read_text()
    return {"service": "teams", "kinds": [kind], "sdl": sdl}


def list_page(request, user):
    # The token is the key of the last resource of a page, so that writes between pages move nothing.
    after = json.loads(request.get("pageToken") or '["", ""]')
    size = min(request.get("pageSize") or 500, 500)
    rows = db.execute("select namespace, name, resource from team where (namespace, name) > (?, ?)"
                      " order by namespace, name limit ?", (*after, size)).fetchall()
    following = json.dumps(rows[-1][:2]) if len(rows) == size else ""
    return {"resources": [json.loads(row[2]) for row in rows], "nextPageToken": following}


def get(request, user):
    found = [find(key) for key in request.get("keys", [])]
    return {"got": [{"resource": resource} if resource else {} for resource in found]}


def changes(request, user):
    position = request.get("position", "")
    history, _, number = position.partition("-")
    now = {"position": f"{HISTORY}-{newest()}"}
    if not position:
        return now
    if history != HISTORY or not number.isdecimal() or int(number) > newest():
        return {**now, "expired": True}
    if int(number) == newest():
        lock.wait(request.get("waitMs", 0) / 1000)
    rows = db.execute("select number, namespace, name from change where number > ? order by number limit 1000",
                      (int(number),)).fetchall()
    keys = [{"kind": "Team", "namespace": namespace, "name": name} for _, namespace, name in rows]
    return {"keys": keys, "position": f"{HISTORY}-{rows[-1][0]}" if rows else position}


def refusal(request, was):
    """Returns the answer to a write or a delete whose conditions do not hold, or None."""
    if was is None:
        return {"outcome": "ABSENT"}  # a write creates only if_absent
    if request.get("ifTag") and request["ifTag"] != was["tag"] or request.get("ifUid") and request["ifUid"] != was["uid"]:
        return {"outcome": "CONFLICT", "resource": was}
    return None


def violations(spec):
    """Returns what of a spec is not acceptable."""
    email, size = spec.get("email"), spec.get("size", 0)
    if not isinstance(email, str) or "@" not in email:
        yield {"path": "spec.email", "rule": "address", "message": "must be a mail address"}
    if not isinstance(size, (int, float)) or size != int(size) or size < 0:
        yield {"path": "spec.size", "rule": "number", "message": "must be a number of people"}


def write(request, user):
    wanted = request["resource"]
    key, spec = wanted["key"], wanted.get("spec", {})
    if key["kind"] != "Team":
        raise ValueError(f"no kind {key['kind']}")
    was = find(key)
    if was and request.get("ifAbsent"):
        return {"outcome": "EXISTS", "resource": was}
    if not request.get("ifAbsent") and (refused := refusal(request, was)):
        return refused
    if wrong := list(violations(spec)):
        return {"outcome": "INVALID", "violations": wrong}
    resource = {
        "key": key, "labels": wanted.get("labels", {}), "annotations": wanted.get("annotations", {}),
        "description": wanted.get("description", ""), "spec": {**spec, "email": spec["email"].lower()},
        "status": {"writtenBy": user}, "uid": was["uid"] if was else uuid.uuid4().hex,
        "createdAt": was["createdAt"] if was else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "writeId": request.get("writeId", ""),
    }
    if not request.get("dryRun"):
        store(key, resource)
    return {"outcome": "DONE", "resource": resource}


def delete(request, user):
    was = find(request["key"])
    if refused := refusal(request, was):
        return refused
    if was["key"]["name"].startswith("keep-"):
        return {"outcome": "REFUSED", "message": "teams whose names begin with keep- stay"}
    if not request.get("dryRun"):
        store(request["key"], None)
    return {"outcome": "DONE", "resource": was}


CALLS = {"Describe": describe, "List": list_page, "Get": get, "Changes": changes, "Write": write, "Delete": delete}


class Handler(BaseHTTPRequestHandler):
    """Answers the calls: POST /sluice.resource.v1.ResourceService/<Call> with JSON."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        call = CALLS.get(self.path.removeprefix("/sluice.resource.v1.ResourceService/"))
        if call is None:
            return self.answer(404, {"code": "unimplemented", "message": f"there is no call {self.path}"})
        try:
            with lock:
                answer = call(json.loads(body or b"{}"), self.headers.get("sluice-user", ""))
        except (KeyError, TypeError, ValueError) as wrong:
            return self.answer(400, {"code": "invalid_argument", "message": repr(wrong)})
        self.answer(200, answer)

    def answer(self, status, answer):
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def log_message(self, *_):
        """Does not log each call."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        """Prints what went wrong, unless the gateway has closed the connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    with Server(("127.0.0.1", arguments.port), Handler) as server:
        print(f"teams: http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
