#!/usr/bin/env python3
"""TLS of the server and of its clients, and the addresses on which it listens.

usage: test_tls.py PERSEUS
"""

import http.client
import os
import pathlib
import pty
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

import served
from served import Server, until

HALF_OPEN = 400


class TlsCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.key, self.certificate = self.folder.name + "/key.pem", self.folder.name + "/certificate.pem"
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out", self.certificate,
                               "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"],
                              capture_output=True)
        if made.returncode != 0:
            self.skipTest("no openssl to make a certificate")

    def tearDown(self):
        self.folder.cleanup()

    def server(self, *arguments, **options):
        server = Server(self.folder.name + "/data", "--tls-certificate", self.certificate, "--tls-key", self.key, *arguments, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.stop(signal.SIGKILL))
        return server


class Tls(TlsCase):
    def test_old_ciphers_are_refused(self):
        server = self.server()
        host, port = server.address.rsplit(":", 1)

        def agreed(ciphers):
            client = ssl.create_default_context(cafile=self.certificate)
            client.maximum_version = ssl.TLSVersion.TLSv1_2
            client.set_ciphers(ciphers)
            with socket.create_connection((host, int(port))) as plain, client.wrap_socket(plain, server_hostname="localhost") as secure:
                return secure.cipher()[0]

        for old in ("AES256-SHA", "AES128-SHA256", "AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-RSA-AES256-SHA"):
            with self.assertRaises(ssl.SSLError, msg=old):
                agreed(old)
        for new in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"):
            self.assertEqual(agreed(new), new)

    def test_an_encrypted_key_is_one_error_and_no_question(self):
        secret = self.folder.name + "/encrypted.pem"
        subprocess.run(["openssl", "rsa", "-aes128", "-passout", "pass:hunter2", "-in", self.key, "-out", secret], check=True,
                       capture_output=True)
        program, terminal = pty.fork()
        if program == 0:
            os.execv(served.PROGRAM, [served.PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", self.folder.name + "/data",
                                      "--tls-certificate", self.certificate, "--tls-key", secret])
        said = served.shown_by(terminal, served.STOP_S, until=b"pass phrase")
        if b"pass phrase" in said:
            os.kill(program, signal.SIGKILL)
        _, status = os.waitpid(program, 0)
        self.assertNotIn(b"pass phrase", said)
        self.assertEqual(os.waitstatus_to_exitcode(status), 65, said)
        self.assertIn(b"encrypted.pem: the private key is encrypted; allowed: a key without a passphrase", said)

    def test_the_log_and_clients_say_that_the_certificate_has_expired(self):
        server = self.server()
        until(lambda: any(f"certificate {self.certificate}: expires on " in line for line in list(server.log)))
        expired = subprocess.run(["openssl", "x509", "-in", self.certificate, "-signkey", self.key, "-days", "-1", "-out",
                                  self.certificate + ".expired", "-copy_extensions", "copy"], capture_output=True)
        if expired.returncode != 0:
            self.skipTest("no openssl to make an expired certificate")
        os.replace(self.certificate + ".expired", self.certificate)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: any(f"certificate {self.certificate}: expired on " in line for line in list(server.log)))
        refused = server.cli("job", "list", "--ca", self.certificate, ok=False)
        self.assertIn("certificate has expired", refused.stderr)
        server.stop(signal.SIGKILL)
        again = self.server()
        until(lambda: any(f"certificate {self.certificate}: expired on " in line for line in list(again.log)))

    def test_a_client_that_sends_nothing_costs_no_buffers(self):
        server = self.server("--request-time-s", "600")
        host, port = server.address.rsplit(":", 1)

        def resident():
            status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0]) * 1024

        def connected():
            client = ssl.create_default_context(cafile=self.certificate)
            asked = http.client.HTTPSConnection("localhost", int(port), context=client)
            asked.request("GET", "/metrics")
            text = asked.getresponse().read().decode()
            asked.close()
            return float(next(line for line in text.splitlines() if line.startswith("perseus_connections ")).split()[1])

        connected()
        before = resident()
        silent = [socket.create_connection((host, int(port))) for _ in range(HALF_OPEN)]
        self.addCleanup(lambda: [one.close() for one in silent])
        until(lambda: connected() > HALF_OPEN)
        per_connection = (resident() - before) / HALF_OPEN
        print(f"silent: {per_connection / 1000:.1f} kB a connection")
        self.assertLess(per_connection, 20_000)
        for one in silent:
            one.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake
        until(lambda: connected() > HALF_OPEN)
        print(f"handshake begun: {(resident() - before) / HALF_OPEN / 1000:.1f} kB a connection")

    def test_no_address_is_sent_as_a_server_s_name(self):
        names = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.sni_callback = lambda _socket, name, _context: names.append(name)
        for family, host, literal in ((socket.AF_INET, "127.0.0.1", True), (socket.AF_INET6, "::1", True), (socket.AF_INET, "localhost", False)):
            listening = socket.create_server(("127.0.0.1" if family == socket.AF_INET else host, 0), family=family)

            def answer():
                with listening, listening.accept()[0] as plain, context.wrap_socket(plain, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"jobs":[]}')

            thread = threading.Thread(target=answer)
            thread.start()
            shown = f"[{host}]" if ":" in host else host
            done = subprocess.run([served.PROGRAM, "job", "list", "--server", f"https://{shown}:{listening.getsockname()[1]}", "--ca",
                                   self.certificate], capture_output=True, text=True)
            thread.join()
            self.assertEqual(names.pop(), None if literal else host, done.stderr)
            self.assertEqual(names, [])


class Addresses(TlsCase):
    def test_a_star_means_both_families(self):
        data = self.folder.name + "/data"
        token = subprocess.run([served.PROGRAM, "token", "create", "--role", "infrastructure", "--data", data], capture_output=True,
                               text=True, check=True).stdout.strip()
        server = Server(data, listen="*:0")
        self.addCleanup(lambda: server.process.poll() is None and server.stop(signal.SIGKILL))
        port = server.address.rsplit(":", 1)[1]
        for host in ("127.0.0.1", "[::1]"):
            done = subprocess.run([served.PROGRAM, "job", "list", "--server", f"http://{host}:{port}", "--token", token],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        second = subprocess.run([served.PROGRAM, "serve", "--listen", f"*:{port}", "--data", data], capture_output=True, text=True)
        self.assertEqual(second.returncode, 69)
        self.assertIn("cannot listen on ", second.stderr)

    def test_all_addresses_of_a_name_are_listened_on(self):
        hosts = pathlib.Path(self.folder.name) / "hosts"
        hosts.write_text("127.0.0.1 localhost\n::1 localhost\n203.0.113.9 localhost\n")
        mounted = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(hosts)]
        if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespaces here")
        server = Server(self.folder.name + "/data", listen="localhost:0", prefix=mounted)
        self.addCleanup(lambda: server.process.poll() is None and server.stop(signal.SIGKILL))
        port = int(server.address.rsplit(":", 1)[1])
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port)).close()
        until(lambda: any("not listening on 203.0.113.9:" in line for line in list(server.log)))


if __name__ == "__main__":
    served.PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
