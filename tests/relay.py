"""A line to the document store that a test can cut, mend, or make lose an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from assay_core.store.client import Store


class Relay:
    """A TCP relay to the server that a test can cut, with a switch to lose the answer to one mark."""

    def __init__(self, target: tuple[str, int], *, host: str = "127.0.0.1") -> None:
        self._target = target
        self._listener = socket.create_server((host, 0))
        self._open: list[socket.socket] = []
        self._cut = threading.Event()
        self._doomed: set[int] = set()
        self.answers_lost = 0
        self.lose_answers = threading.Event()
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._cut.set()
        self.drop()

    def mend(self) -> None:
        self._doomed.clear()
        self._cut.clear()

    def drop(self) -> None:
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._cut.is_set():
                near.close()
                continue
            try:
                far = socket.create_connection(self._target, timeout=5)
            except OSError:
                near.close()  # the server is gone: so is this line to it, and the next may do better
                continue
            far.settimeout(None)
            self._open += [near, far]
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with source, suppress(OSError):
            while data := source.recv(65_536):
                if not answers and self.lose_answers.is_set() and b"last_mark" in data:
                    self._doomed.add(source.fileno())
                if answers and sink.fileno() in self._doomed:
                    self.lose_answers.clear()
                    self.answers_lost += 1
                    self.cut()
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)


def relay_to(uri: str, *, host: str = "127.0.0.1") -> Relay:
    """A relay that listens on `host`, to the server of a `mongodb://host:port` address."""
    server, _, port = uri.removeprefix("mongodb://").partition(":")
    return Relay((server, int(port)), host=host)


@contextmanager
def over(line: Relay, store: Store) -> Iterator[Store]:
    uri = f"mongodb://127.0.0.1:{line.port}/?directConnection=true&heartbeatFrequencyMS=500"
    with Store.connect(uri, store.database.name, timeout_s=1) as far:
        yield far
