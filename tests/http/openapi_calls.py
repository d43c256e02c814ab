"""Random calls of an HTTP API, generated from its OpenAPI description: valid calls, and calls with one error."""

import copy
import json
import urllib.parse

BIG_NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**53, 2**63, -(2**63) - 1, 1e-300, 1e308, -1e308, 10**400, float("nan"),
               float("inf"), 0.5, -0.0]
TEXTS = ["", " ", "a\u0000b", "\u202eabc", "größer", "模型", "\ud800", "\U0001f680", "..", "../../etc/passwd", "'; DROP TABLE",
         "%00", "\"\\", "a" * 300, "null", "\r\nX: y", "<script>"]
# Placeholders in JSON text for values that json.dumps cannot write.
RAW = {'"@huge@"': "1e999", '"@deep@"': "[" * 3000 + "]" * 3000, '"@deep object@"': '{"a":' * 500 + "1" + "}" * 500,
       '"@octal@"': "007", '"@hex@"': "0x10", '"@minus@"': "-"}


class Call:
    def __init__(self, template, method, operation):
        self.template, self.method, self.operation = template, method, operation
        self.name = f"{method} {template}"
        self.role = operation.get("x-role")
        self.target, self.body, self.headers = template, None, {}
        self.job = None          # the job in the path
        self.odd_path = False    # the path may match another call
        self.may_wait = False    # the call may request a long wait


class CallGenerator:
    """Draws calls; the caller keeps the lists of what exists up to date."""

    def __init__(self, api, chance, profile_body):
        self.api, self.chance, self.profile_body = api, chance, profile_body
        self.calls = [(template, method, operation) for template, methods in api["paths"].items()
                      for method, operation in methods.items()]
        # Registering, reporting and planning change more than the other calls.
        self.weights = [3 if method in ("post", "put") else 1 for _, method, _ in self.calls]
        self.jobs, self.own_jobs, self.notices, self.learned, self.tokens = [], [], [], [], []
        self.marker = ""

    def removal(self, job):
        """Calls of one job, which must have ended."""
        template, method = self.chance.choice([("/v1/jobs/{job}/finish", "post"), ("/v1/jobs/{job}", "delete")])
        call = Call(template, method.upper(), self.api["paths"][template][method])
        call.job, call.target = job, template.replace("{job}", urllib.parse.quote(job, safe=""))
        return call

    def revocation(self):
        template = "/v1/tokens/{token}"
        call = Call(template, "DELETE", self.api["paths"][template]["delete"])
        call.target = f"/v1/tokens/{self.tokens[0]}"
        return call

    def call(self, marker):
        self.marker = marker
        template, method, operation = self.chance.choices(self.calls, self.weights)[0]
        call = Call(template, method.upper(), operation)
        query = []
        for parameter in operation.get("parameters", []):
            name = parameter["name"]
            if parameter["in"] == "path":
                value = self.path_value(name)
                if name == "job":
                    call.job = value
                call.odd_path |= value == "" or "/" in value
                call.target = call.target.replace("{" + name + "}", urllib.parse.quote(value.encode("utf-8", "surrogatepass"), safe=""))
            elif parameter["in"] == "query" and self.chance.random() < 0.5:
                query.append((name, self.query_value(parameter)))
            elif parameter["in"] == "header" and self.chance.random() < 0.3:
                call.headers[name] = self.chance.choice(["0", "5", "-1", "x", "99999999999999999999"])
        if call.name == "GET /v1/jobs/{job}/ranks/{rank}/plan":
            waits = [value for name, value in query if name == "wait_s"]
            if not waits:
                query.append(("wait_s", "0.05"))
            call.may_wait = bool(waits) and waits[0] not in ("0", "0.05")
        if self.chance.random() < 0.03:
            query.append(self.chance.choice([("page", "2"), ("", ""), ("limit", "x"), ("a" * 3000, "b"), query[0] if query else ("x", "y")]))
        if query:
            call.target += "?" + "&".join(f"{urllib.parse.quote(name)}={urllib.parse.quote(value.encode('utf-8', 'surrogatepass'))}"
                                          for name, value in query)
        self.add_body(call)
        return call

    def path_value(self, name):
        chance = self.chance
        if chance.random() < 0.05:
            return chance.choice(TEXTS + ["a/b", "x" * 5000])
        if name == "job":
            some = self.own_jobs if chance.random() < 0.7 else self.jobs
            return chance.choice(some) if some and chance.random() < 0.93 else "absent"
        if name == "rank":
            return chance.choice(["0", "1", "2", "3", "3", "7", "-1", "99", "x", "99999999999999999999", "1e3", "+1"])
        if name == "kind":
            return chance.choice(["power_cap", "pinned", "max_slowdown", "nothing"])
        if name == "name":
            return chance.choice(["sample", "p0", "p1", "p2", "absent"])
        some = {"notice": self.notices, "id": self.learned, "token": self.tokens}.get(name, [])
        return chance.choice(some) if some and chance.random() < 0.8 else "absent"

    def query_value(self, parameter):
        chance, name = self.chance, parameter["name"]
        if chance.random() < 0.15:
            return chance.choice(TEXTS + [str(number) for number in BIG_NUMBERS])
        if name == "wait_s":
            return chance.choice(["0", "0.05"])
        if name == "state":
            return chance.choice(["deployed", "finished", "x"])
        if name == "limit":
            return chance.choice(["1", "5", "1000", "0", "1001"])
        if name in ("search", "after") and parameter["schema"]["type"] == "string":
            return chance.choice(["owned", "x", self.jobs[0] if self.jobs else "j"])
        return str(chance.randrange(0, 5))

    def add_body(self, call):
        content = call.operation.get("requestBody", {}).get("content")
        chance = self.chance
        if not content:
            if call.method in ("POST", "PUT", "DELETE") and chance.random() < 0.3:
                call.body, call.headers["Content-Type"] = b"{}", "application/json"
            return
        call.headers["Content-Type"] = "application/json" if chance.random() < 0.98 else chance.choice(["text/plain", "", "x" * 500])
        body = self.body_of(call, content["application/json"]["schema"])
        if chance.random() < 0.5:
            body = self.with_one_wrong(body)
        text = json.dumps(body)
        for placeholder, raw in RAW.items():
            text = text.replace(placeholder, raw)
        call.body = text.encode()
        if chance.random() < 0.08:
            call.body = self.wrong_text(call.body)

    def wrong_text(self, text):
        chance = self.chance
        at = chance.randrange(len(text) + 1)
        return chance.choice([text[:at], b"", text + text, text[:at] + b"\xff\xc0" + text[at:], b"\xef\xbb\xbf" + text,
                              text + b"\0", text.replace(b"{", b'{"rank":1,"rank":2,', 1), text.replace(b",", b",,", 1),
                              text[:at] + bytes([chance.randrange(256)]) + text[at + 1:], b" " * 100000 + text, b"null", b"[]",
                              b'"x"', b"1", b"NaN"])

    # ---- Bodies

    def resolved(self, schema):
        while "$ref" in schema:
            schema = self.api["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def body_of(self, call, schema):
        chance = self.chance
        if call.template.endswith("policies/{kind}"):
            return chance.choice([{"average_w": chance.uniform(100, 5000)}, {"time_s": chance.uniform(0.1, 20)}, {"point": chance.randrange(40)},
                                  {"slowdown": chance.uniform(1, 2)},
                                  {"slowdown": 1.1, "threshold": 80, "signal": [{"from_s": 1790000000, "value": 95}], "unit": "EUR/MWh"}])
        body = self.value(self.resolved(schema), "", 0)
        if "profile_csv" in body and chance.random() < 0.9:
            body.update(self.profile_body())
            body.pop("pipelines", None)
        if call.name == "POST /v1/jobs":
            body["name"] = self.marker + chance.choice(["", "x", "ü"])
            if chance.random() < 0.8:
                body["degrees"] = {"dp": chance.choice([1, 1, 2]), "pp": 4, "tp": 1}
                for member in ("world_size", "profile_of", "switch_latency_s"):
                    body.pop(member, None)
                body["profile"] = "sample"
        if "role" in body:
            body["name"] = self.marker
            if chance.random() < 0.7:
                body.pop("job", None)
            body["expires_in_s"] = 600
        if call.template.endswith("/ranks") and chance.random() < 0.8:
            rank = chance.randrange(4)
            body.update({"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0})
        if "wait_s" in body:
            body["wait_s"] = chance.choice([0, 0.05])
        if "degree" in body and chance.random() < 0.8:
            for member in chance.sample(["accelerator", "rank", "pipeline"], 2):
                body.pop(member, None)
        return body

    def value(self, schema, name, depth):
        schema, chance = self.resolved(schema), self.chance
        if "enum" in schema:
            return chance.choice(schema["enum"])
        if "oneOf" in schema:
            schema = schema["oneOf"][0]
        kind = schema.get("type", "object")
        if kind == "object":
            required = set(schema.get("required", []))
            made = {member: self.value(of, member, depth + 1) for member, of in schema.get("properties", {}).items()
                    if member in required or chance.random() < 0.4}
            more = schema.get("additionalProperties")
            if isinstance(more, dict):
                for _ in range(chance.randrange(3)):
                    made[self.word(name, True)] = self.value(more, name, depth + 1)
            return made
        if kind == "array":
            if "prefixItems" in schema:
                return [self.value(of, name, depth + 1) for of in schema["prefixItems"]]
            return [self.value(schema["items"], name, depth + 1) for _ in range(chance.choice([0, 1, 1, 2, 5]))]
        if kind == "integer":
            return chance.choice([0, 1, 2, 3, 4, 8])
        if kind == "number":
            return chance.choice([1, 0.5, 1.2, 4.0, 90])
        if kind == "boolean":
            return chance.random() < 0.5
        return self.word(name)

    def word(self, name, key=False):
        chance = self.chance
        if key:
            return chance.choice({"facts": ["model", "framework", "x"], "profile_of": ["0", "1", "x"]}.get(name, ["forward", "backward"]))
        if name == "job":
            return chance.choice(self.jobs) if self.jobs else "absent"
        if name == "body":
            return json.dumps({"rank": chance.randrange(4), "iteration_time_s": [4.0], "last_iteration": 3})
        if name == "facts":
            return self.marker
        return chance.choice({"schedule": ["1f1b", "1f1b", "gpipe", "interleaved", "x"], "profile": ["sample", "p0", "absent"],
                              "profile_of": ["sample", "absent"], "accelerator": ["GPU-0", "GPU-1", "GPU-9"],
                              "instructions": ["forward", "backward"]}.get(name, ["a", "b", ""]))

    def with_one_wrong(self, body):
        """Returns a copy with one member wrong, missing, added, huge, nested or with unusual text."""
        body, chance = copy.deepcopy(body), self.chance
        places = []

        def collect(value):
            members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
            for key, inner in members:
                places.append((value, key))
                collect(inner)

        collect(body)
        if not places or chance.random() < 0.1:
            if isinstance(body, dict):
                body[chance.choice(["extra", "rank", "", "__proto__", "ü"])] = chance.choice([1, None, {}])
            return body
        holder, key = chance.choice(places)
        what = chance.randrange(6)
        if what == 0:
            del holder[key]
        elif what == 1:
            holder[key] = chance.choice([None, True, "x", 1, {}, [], [[]], {"a": {}}, 1.5])
        elif what == 2:
            holder[key] = chance.choice(BIG_NUMBERS)
        elif what == 3:
            holder[key] = chance.choice(TEXTS + ["x" * 200000])
        elif what == 4:
            holder[key] = chance.choice([placeholder.strip('"') for placeholder in RAW])
        else:
            several = holder[key] if isinstance(holder[key], list) else [holder[key]]
            holder[key] = several * chance.choice([2, 1000, 20000])
            if len(json.dumps(holder[key])) > 4_000_000:
                holder[key] = [[]] * 20000
        return body
