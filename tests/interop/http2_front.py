"""An HTTP/2 front for a plain Hub: two TLS origins that speak nothing but h2, each in front of one
HTTP/1.1 origin. Usage: http2_front.py CERTIFICATE KEY SITE STORAGE READY_FILE LOG_FILE, where SITE and
STORAGE are http://host:port. Writes its own two addresses to the ready file, and a line for each
request to the log."""
import http.client
import os
import socket
import ssl
import sys
import threading
import urllib.parse

import h2.config
import h2.connection
import h2.events

certificate, key, site, storage, ready_file, log_file = sys.argv[1:]
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate, key)
tls.set_alpn_protocols(["h2"])
origins = {}  # ours -> theirs
log_lock = threading.Lock()


def log(line):
    with log_lock, open(log_file, "a") as out:
        out.write(line + "\n")


def ask(upstream, headers):
    """The plain Hub's answer to a request, with our addresses in place of its own."""
    fields = dict(headers)
    where = urllib.parse.urlsplit(upstream)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=30)
    kept = {n: v for n, v in headers if not n.startswith(":")}
    connection.request(fields[":method"], fields[":path"], headers=kept)
    answer = connection.getresponse()
    body = answer.read()
    out = [(":status", str(answer.status))]
    for name, value in answer.getheaders():
        if name.lower() in ("connection", "transfer-encoding", "keep-alive"):
            continue
        for ours, theirs in origins.items():
            value = value.replace(theirs, ours)
        out.append((name.lower(), value))
    connection.close()
    return out, body


class Connection:
    def __init__(self, sock, upstream, number):
        self.sock, self.upstream, self.number = sock, upstream, number
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.bodies = {}

    def pump(self):
        for stream in list(self.bodies):
            body = self.bodies[stream]
            while body:
                room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                if room <= 0:
                    break
                self.h2.send_data(stream, bytes(body[:room]))
                body = body[room:]
            self.bodies[stream] = body
            if not body:
                self.h2.end_stream(stream)
                del self.bodies[stream]
        self.sock.sendall(self.h2.data_to_send())

    def run(self):
        self.h2.initiate_connection()
        self.sock.sendall(self.h2.data_to_send())
        while data := self.sock.recv(65536):
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    headers = [(n.decode() if isinstance(n, bytes) else n,
                                v.decode() if isinstance(v, bytes) else v) for n, v in event.headers]
                    answer, body = ask(self.upstream, headers)
                    log(f"{self.sock.selected_alpn_protocol()} connection {self.number} {dict(headers)[':path'].split('?')[0]}")
                    self.h2.send_headers(event.stream_id, answer, end_stream=not body)
                    if body:
                        self.bodies[event.stream_id] = memoryview(body)
                elif isinstance(event, h2.events.StreamReset):
                    self.bodies.pop(event.stream_id, None)
                elif isinstance(event, h2.events.ConnectionTerminated):
                    return
            self.pump()


def serve(listener, upstream):
    number = 0
    while True:
        plain, _ = listener.accept()
        number += 1

        def one(plain=plain, number=number):
            try:
                Connection(tls.wrap_socket(plain, server_side=True), upstream, number).run()
            except OSError:
                pass

        threading.Thread(target=one, daemon=True).start()


listeners = []
for theirs in (site, storage):
    listener = socket.create_server(("127.0.0.1", 0))
    origins[f"https://127.0.0.1:{listener.getsockname()[1]}"] = theirs
    listeners.append((listener, theirs))
for listener, theirs in listeners:
    threading.Thread(target=serve, args=(listener, theirs), daemon=True).start()
with open(ready_file + ".tmp", "w") as out:
    out.write("\n".join(origins) + "\n")
os.rename(ready_file + ".tmp", ready_file)
threading.Event().wait()
