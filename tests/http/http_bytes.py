"""Strict parsers of HTTP/1.1 requests and answers (RFC 9110, 9112), and a mutator of request bytes.

The parsers are independent of the server. Where two parsers of the same bytes could disagree on where a request ends,
read_requests() returns "invalid", and a server that reads on behind that point is wrong.
"""

import re

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*")
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\x20-\x7e\t]*)")
CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[\x20-\x7e\x80-\xff\t]*)?")
MOST_BODY = 1 << 40


class Malformed(Exception):
    pass


class Incomplete(Exception):
    pass


class Request:
    def __init__(self, method, target, closes):
        self.method, self.target, self.closes = method, target, closes


class Answer:
    def __init__(self, status, body, closes):
        self.status, self.body, self.closes = status, body, closes


class Bytes:
    def __init__(self, text):
        self.text, self.at = text, 0

    def line(self):
        end = self.text.find(b"\r\n", self.at)
        if end < 0:
            raise Incomplete()
        line = self.text[self.at:end]
        self.at = end + 2
        return line

    def take(self, count):
        if len(self.text) - self.at < count:
            raise Incomplete()
        self.at += count
        return self.text[self.at - count:self.at]


def read_fields(text):
    fields = []
    while line := text.line():
        field = FIELD.fullmatch(line)
        if not field:
            raise Malformed(f"the header line {line[:80]!r}")
        fields.append((field[1].lower(), field[2]))
    return fields


def values(fields, name):
    return [value for key, value in fields if key == name]


def read_chunks(text):
    body = b""
    while True:
        line = CHUNK_LINE.fullmatch(text.line())
        if not line:
            raise Malformed("the size of a chunk")
        size = int(line[1], 16)
        if size == 0:
            read_fields(text)
            return body
        body += text.take(size)
        if text.take(2) != b"\r\n":
            raise Malformed("what follows a chunk")


def length_of(fields):
    lengths = values(fields, b"content-length")
    if not lengths:
        return None
    if len(lengths) > 1 or not re.fullmatch(rb"[0-9]+", lengths[0]) or int(lengths[0]) > MOST_BODY:
        raise Malformed(f"Content-Length {lengths}")
    return int(lengths[0])


def connection_words(fields):
    return {word.strip().lower() for value in values(fields, b"connection") for word in value.split(b",")}


def read_request(text, methods):
    line = REQUEST_LINE.fullmatch(text.line())
    if not line:
        raise Malformed("the request line")
    methods.append(line[1])
    fields = read_fields(text)
    minor = line[3]
    hosts = values(fields, b"host")
    if len(hosts) > 1 or (minor == b"1" and not hosts):
        raise Malformed("headers Host")
    length, codings = length_of(fields), values(fields, b"transfer-encoding")
    words = connection_words(fields)
    request = Request(line[1], line[2], b"close" in words or (minor == b"0" and b"keep-alive" not in words))
    if codings:
        if length is not None or minor == b"0" or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise Malformed("Transfer-Encoding")
        read_chunks(text)
    elif length:
        text.take(length)
    return request


def read_requests(sent):
    """Returns the complete, unambiguous requests; the rest (complete, incomplete or "invalid: why"); all methods.

    The methods include that of an incomplete or invalid last request whose first line can be read.
    """
    text, requests, methods = Bytes(sent), [], []
    while text.at < len(sent):
        try:
            requests.append(read_request(text, methods))
        except Incomplete:
            return requests, "incomplete", methods
        except Malformed as why:
            return requests, f"invalid: {why}", methods
        if requests[-1].closes:
            break  # the server must not answer the rest
    return requests, "complete", methods


def read_answers(received, methods, cut=False):
    """Returns all final answers, well-formed; `cut`: the last one may be incomplete, because the connection was
    reset."""
    text, answers = Bytes(received), []
    while text.at < len(received):
        try:
            answer = read_answer(text, methods[len(answers)] if len(answers) < len(methods) else b"")
        except Incomplete:
            if cut:
                return answers
            raise Malformed("it ends within its head or body") from None
        if answer:
            answers.append(answer)
    return answers


def read_answer(text, method):
    line = STATUS_LINE.fullmatch(text.line())
    if not line:
        raise Malformed("the status line")
    status, fields = int(line[1]), read_fields(text)
    closes = b"close" in connection_words(fields)
    if status < 200:
        return None
    length, codings = length_of(fields), values(fields, b"transfer-encoding")
    if codings and (codings != [b"chunked"] or length is not None):
        raise Malformed("Transfer-Encoding")
    # The server may reject a head by its size before reading it: then it does not know the method.
    unread = status == 431 and text.at < len(text.text)
    if (method == b"HEAD" and not unread) or status in (204, 304):
        return Answer(status, b"", closes)
    if codings:
        return Answer(status, read_chunks(text), closes)
    if length is None:
        raise Malformed("neither Content-Length nor Transfer-Encoding")
    return Answer(status, text.take(length), closes)


TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(range(64))
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS = [b"Expect: 100-continue", b"Expect: 200-ok", b"Upgrade: websocket", b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings",
           b"Connection: close", b"Connection: keep-alive", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity",
           b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: xchunked",
           b"Transfer-Encoding : chunked", b"Transfer-Encoding:\tchunked", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: CHUNKED",
           b"X: a\r\n\tTransfer-Encoding: chunked", b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: +5", b"Content-Length: -1",
           b"Content-Length: 0x5", b"Content-Length: 5, 5", b"Content-Length: 5, 6", b"Content-Length: 05", b"Content-Length:",
           b"Content-Length: 99999999999999999999", b"Content-Length: 18446744073709551616", b"Content-Length : 5", b"Host: other.example",
           b"Host:", b"X:" + b"a" * 100000, b"X: a\0b", b"X: a\rb", b"X: a\nb", b": empty", b"no colon", b"\0: x", b"X: \xff\xfe",
           b"Authorization: Bearer x", b"Authorization: Basic \xff", b"Content-Encoding: gzip", b"Accept-Encoding: gzip, *;q=0",
           b"If-None-Match: *", b"Range: bytes=0-5", b"Trailer: Content-Length", b"TE: trailers", b"Origin: null", b"Max-Forwards: 0"]


class Mutator:
    """Draws the bytes of one connection: mutated requests, then a sentinel: a valid request for something absent."""

    def __init__(self, chance, address, job):
        self.chance = chance
        self.host = b"Host: " + address.encode()
        job = job.encode()
        json_type = b"Content-Type: application/json"
        chunked = b'{"degrees":{"dp":1,"pp":1,"tp":1}}'
        self.valid = [
            self.request(b"GET", b"/healthz"),
            self.request(b"GET", b"/v1/jobs/" + job),
            self.request(b"HEAD", b"/v1/jobs/" + job),
            self.request(b"GET", b"/v1/jobs?limit=2"),
            self.request(b"HEAD", b"/v1/job_changes"),
            self.request(b"HEAD", b"/v1/jobs/" + job + b"/events"),
            self.request(b"OPTIONS", b"/v1/jobs"),
            self.request(b"DELETE", b"/v1/jobs/absent"),
            self.request(b"GET", b"http://" + address.encode() + b"/healthz"),
            self.request(b"POST", b"/v1/jobs/" + job + b"/iterations", [json_type], b'{"rank":0,"iteration_time_s":[1.0]}'),
            self.request(b"POST", b"/v1/jobs/absent/ranks", [json_type], b'{"rank":0,"dp_rank":0,"pp_rank":0,"tp_rank":0}'),
            self.request(b"POST", b"/v1/jobs/" + job + b"/ranks", [json_type], b'{"rank":9,"dp_rank":0,"pp_rank":0,"tp_rank":0}'),
            self.request(b"PUT", b"/v1/jobs/absent/profile", [json_type], b'{"profile_csv":"' + b"x" * 3000 + b'","pipeline":{"schedule":"1f1b"}}'),
            self.request(b"GET", b"/v1/jobs/" + job + b"/ranks/0/plan?have=0&wait_s=0"),
            self.head(b"POST", b"/v1/jobs/absent/iterations", [json_type, b"Transfer-Encoding: chunked"]) + self.chunks(chunked),
            self.head(b"GET", b"/healthz", [], b"1.0"),
            self.head(b"GET", b"/healthz", [b"Connection: keep-alive"], b"1.0"),
        ]

    def head(self, method, target, more=(), minor=b"1.1"):
        return b"\r\n".join([method + b" " + target + b" HTTP/" + minor, self.host, *more]) + b"\r\n\r\n"

    def request(self, method, target, more=(), body=b""):
        length = [b"Content-Length: %d" % len(body)] if body else []
        return self.head(method, target, [*more, *length]) + body

    def chunks(self, body):
        text, chance = b"", self.chance
        while body:
            size = chance.choice([1, 2, 7, 1000])
            piece, body = body[:size], body[size:]
            text += (b"%x" if chance.random() < 0.7 else b"%04X") % len(piece) + chance.choice([b"", b"", b";x=y", b";" + b"e" * 2000]) + b"\r\n" + piece + b"\r\n"
        return text + b"0" * chance.choice([1, 1, 3]) + chance.choice([b"", b";last"]) + b"\r\n" + chance.choice([b"", b"", b"Trailer: x\r\n"]) + b"\r\n"

    def connection(self, sentinel):
        """Returns all bytes to send, and the same bytes in pieces."""
        chance = self.chance
        requests = [chance.choice(self.valid) for _ in range(chance.choice([1, 1, 1, 2, 3, 8]))]
        for _ in range(chance.choice([0, 1, 1, 1, 2, 4])):
            at = chance.randrange(len(requests))
            requests[at] = self.mutated(requests[at])
        end = self.request(b"GET", b"/v1/jobs/" + sentinel.encode(), [b"Connection: close"])
        sent = b"".join(requests) + end
        return sent, self.pieces(sent)

    def pieces(self, sent):
        chance = self.chance
        if chance.random() < 0.6:
            return [sent]
        cuts = sorted(chance.randrange(len(sent) + 1) for _ in range(chance.choice([1, 2, 5, 30])))
        return [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)]) if a < b]

    def mutated(self, text):
        chance = self.chance
        if not text:
            return text
        at = chance.randrange(len(text) + 1)
        some = chance.randrange(1, 20)
        head_end = text.find(b"\r\n\r\n")
        what = chance.randrange(15)
        if what <= 3 and head_end > 0:  # an additional header
            lines = text[:head_end].split(b"\r\n")
            lines.insert(chance.randrange(1, len(lines) + 1), chance.choice(HEADERS))
            return b"\r\n".join(lines) + text[head_end:]
        if what == 4:  # flipped bytes
            changed = bytearray(text)
            for _ in range(chance.choice([1, 1, 3])):
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            return bytes(changed)
        if what == 5:
            return text[:at]
        if what == 6:
            return text[:at] + text[at + some:]
        if what == 7:
            return text[:at] + text[max(0, at - some):]
        if what == 8:  # splices
            other = chance.choice(self.valid)
            return text[:at] + other[chance.randrange(len(other)):]
        if what == 9:
            return text[:at] + chance.choice([b"\0", b"\n", b"\r", b"\r\n", b"\r\n\r\n", b" ", b"\t", b"\x7f", b"\xff", b"%", b"0\r\n\r\n",
                                              b"\xe2\x80\xae"]) + text[at:]
        if what == 10:
            return chance.choice([text.replace(b"\r\n", b"\n"), text.replace(b"\r\n", b"\r"), text.replace(b"\r\n", b"\n", 1),
                                  b"\r\n" + text, b"\n" + text, b" " + text, text + b"\r\n"])
        if what == 11:
            return re.sub(rb"Content-Length: (\d+)", lambda found: b"Content-Length: %d" % max(0, int(found[1]) + chance.choice([-5, -1, 1, 100, 10**7])), text)
        if what == 12:
            return re.sub(rb" (\S+) HTTP/1.1", lambda found: b" " + chance.choice(
                [b"*", b"//" + found[1], b"http://other.example/healthz", b"HTTP://x/", b"http://", b"/%zz", b"/%00", b"/..%2f", b"/v1/jobs?" + b"a" * 60000,
                 b"/v1/jobs#x", b"ftp://x/y", b"x:443", b"/\xff", b"", b"/v1/jobs/" + found[1]]) + b" HTTP/" + chance.choice([b"1.1", b"1.1", b"1.0", b"2.0", b"0.9", b"1.2", b"11"]), text, count=1)
        if what == 13:
            return chance.choice([TLS_HELLO, HTTP_2, b"\0" * 100, bytes(chance.randrange(256) for _ in range(200)), b"GET /healthz\r\n\r\n", TLS_HELLO + text])
        word = text.split(b" ", 1)
        return chance.choice([b"CONNECT", b"TRACE", b"get", b"G\0T", b"POST", b"HEAD", b"PATCH", b"X" * 10000]) + b" " + word[-1]
