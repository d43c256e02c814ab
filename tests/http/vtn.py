"""A utility's OpenADR 3.1 server (VTN) for tests: programs, events, tokens; well-behaved, or not."""

import http.server
import json
import threading
import time
import urllib.parse

CLIENT, SECRET = "site-7", "open sesame".replace(" ", "-")


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def event(name, payload, values, start=None, duration="PT1H", **others):
    """An event as a business logic sends it; start: None is now."""
    return {
        "programID": "program-1",
        "eventName": name,
        "intervalPeriod": {"start": "0001-01-01T00:00:00Z" if start is None else stamp(start), "duration": duration},
        "payloadDescriptors": [{"objectType": "EVENT_PAYLOAD_DESCRIPTOR", "payloadType": payload, "units": "KW"}],
        "intervals": [{"id": 0, "payloads": [{"type": payload, "values": values}]}],
        **others,
    }


class Vtn:
    """Faults: self.faults, a list of functions of the handler; each is called once instead of the next list call."""

    def __init__(self, expires_s=3600, page=50, tls=None):
        """tls: an ssl.SSLContext."""
        self.expires_s, self.page = expires_s, page
        self.objects = {"program-1": self.made("program-1", "PROGRAM", {"programName": "limits"})}
        self.events, self.faults, self.calls, self.tokens = {}, [], [], []
        # report_faults: as faults, for calls of /reports; "lost": the call is done, and its answer lost.
        self.reports, self.report_faults, self.refused_scopes, self.next_report = {}, [], set(), 1
        self.next_id, self.base = 1, ""  # base: of the paths of all calls, as in /openadr3/3.1.1
        self.filters = self.has_auth_server = True  # by targets; false: as in OpenADR 3.0
        self.registered = {"/vens": [], "/resources": []}
        self.registration_faults = []  # as faults; "409": another client has made the object at this moment
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.answer(self, "GET")

            def do_POST(self):
                outer.answer(self, "POST")

            def do_PUT(self):
                outer.answer(self, "PUT")

            def reply(self, status, content, text=None, headers=()):
                body = (text if text is not None else json.dumps(content)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if self.close_connection:  # else a proxy in front sends another request on it
                    self.send_header("Connection", "close")
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
            self.server.handle_error = lambda *_: None  # clients that refuse the certificate
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server.server_port}"
        self.public_url = self.url  # of the token endpoint; a proxy's, if one is in front
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @staticmethod
    def made(number, kind, content):
        now = stamp(time.time())
        return {"id": number, "createdDateTime": now, "modificationDateTime": now, "objectType": kind, **content}

    def add(self, content):
        number = f"event-{self.next_id}"
        self.next_id += 1
        self.events[number] = self.made(number, "EVENT", content)
        return number

    def change(self, number, content):
        self.events[number] = self.made(number, "EVENT", content)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, method):
        if not handler.path.startswith(self.base + "/"):
            return handler.reply(404, {"status": 404, "title": "Not Found"})
        url = urllib.parse.urlsplit(handler.path[len(self.base):])
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.calls.append((method, handler.path))
        if url.path == "/auth/server" and not self.has_auth_server:
            return handler.reply(404, {"status": 404})
        if url.path == "/auth/server":
            return handler.reply(200, {"tokenURL": self.public_url + self.base + "/auth/token"})
        if url.path == "/auth/token":
            return self.give_token(handler, dict(urllib.parse.parse_qsl(body.decode())))
        bearer = handler.headers.get("Authorization", "").removeprefix("Bearer ")
        if bearer not in [token for token, end in self.tokens if end > time.monotonic()]:
            return handler.reply(401, {"status": 401, "title": "Unauthorized"})
        if self.faults and url.path in ("/events", "/programs"):
            return self.faults.pop(0)(handler)
        query = urllib.parse.parse_qs(url.query)
        if url.path in self.registered:
            return self.answer_registration(handler, method, url.path, query, body)
        if url.path == "/reports" or url.path.startswith("/reports/"):
            return self.answer_reports(handler, method, url.path, query, body)
        if url.path == "/programs":
            return self.give_list(handler, self.objects.values(), query)
        if url.path == "/events":
            return self.give_list(handler, self.events.values(), query)
        found = self.events.get(url.path.removeprefix("/events/"))
        return handler.reply(200, found) if found else handler.reply(404, {"status": 404, "title": "Not Found"})

    def give_token(self, handler, form):
        right = {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": SECRET}
        if any(form.get(key) != value for key, value in right.items()):
            return handler.reply(401, {"error": "invalid_client"})
        if refused := self.refused_scopes & set(form.get("scope", "").split()):
            return handler.reply(400, {"error": "invalid_scope", "error_description": "not granted: " + " ".join(refused)})
        token = f"token-{len(self.tokens)}"
        self.tokens.append((token, time.monotonic() + self.expires_s))
        return handler.reply(200, {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_s})

    def answer_reports(self, handler, method, path, query, body):
        fault = self.report_faults.pop(0) if self.report_faults else None
        if fault and fault != "lost":
            return fault(handler)
        if method == "GET":
            rows = [row for row in self.reports.values()
                    if row["eventID"] == query["eventID"][0] and row["clientName"] == query["clientName"][0]]
            return self.give_list(handler, rows, {"skip": query["skip"], "limit": query["limit"]})
        number = path.removeprefix("/reports/") if method == "PUT" else f"report-{self.next_report}"
        if method == "PUT" and number not in self.reports:
            return handler.reply(404, {"status": 404, "title": "Not Found"})
        if method == "POST":
            self.next_report += 1
        self.reports[number] = self.made(number, "REPORT", {"clientID": CLIENT, **json.loads(body)})
        if fault == "lost":
            handler.close_connection = True
            return handler.connection.close()
        return handler.reply(201 if method == "POST" else 200, self.reports[number])

    def answer_registration(self, handler, method, path, query, body):
        kind, name = {"/vens": ("VEN", "venName"), "/resources": ("RESOURCE", "resourceName")}[path]
        if method == "GET":
            rows = [row for row in self.registered[path] if row[name] == query[name][0]]
            return self.give_list(handler, rows, {"skip": query["skip"], "limit": query["limit"]})
        made = self.made(f"{kind}-{len(self.registered[path])}", kind, {"clientID": CLIENT, **json.loads(body)})
        assert made["objectType"] == f"VEN_{kind}_REQUEST"
        fault = self.registration_faults.pop(0) if self.registration_faults else None
        if fault and fault != "409":
            return fault(handler)
        self.registered[path].append({**made, "objectType": kind})
        return handler.reply(409 if fault else 201, {"status": 409, "title": "Conflict"} if fault else made)

    def give_list(self, handler, rows, query):
        skip, limit = int(query.get("skip", ["0"])[0]), min(int(query.get("limit", ["50"])[0]), self.page)
        targets = set(query.get("targets", []))
        program = query.get("programID", [None])[0]
        visible = [
            row
            for row in rows
            if (not self.filters or not row.get("targets") or targets & set(row["targets"]))
            and (program is None or row.get("programID", row["id"]) == program)
        ]
        return handler.reply(200, visible[skip : skip + limit])
