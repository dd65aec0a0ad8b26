# SPDX-License-Identifier: BSD-3-Clause
"""Run a function in a fork, so that it can be killed, starved or shut out.

A fork has all modules loaded: what takes a fresh interpreter seconds takes it none.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from joblib.externals.loky import reusable_executor


class Fork:
    """A function that runs in a process of its own; its SystemExit is the exit code.

    stdout and stderr go to files in a folder, stdout elsewhere if given.
    """

    def __init__(self, function, folder, stdout=None):
        self.out = Path(stdout or folder / f"out{os.urandom(4).hex()}")
        self.err = folder / f"err{os.urandom(4).hex()}"
        self.pid = os.fork()
        if self.pid == 0:
            self._run(function)

    def _run(self, function):
        code = 1
        try:
            os.setsid()
            # In the background or under nohup pytest runs with these ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.alarm(600)  # it lives no longer, whatever becomes of the test
            # The threads of a pool that earlier tests have used did not come along.
            reusable_executor._executor = None
            for number, path in ((1, self.out), (2, self.err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644), number)
            sys.stdout = open(1, "w", closefd=False, encoding="utf-8")
            sys.stderr = open(2, "w", closefd=False, encoding="utf-8", buffering=1)
            function()
            code = 0
            sys.stdout.flush()
        except SystemExit as end:
            code = end.code or 0
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def read_out(self):
        return self.out.read_text()

    def read_err(self):
        return self.err.read_text()

    def wait_for(self, path, text):
        """Wait until a file has a text in it."""
        for _ in range(6000):
            if path.exists() and text in path.read_text():
                return
            time.sleep(0.01)
        raise TimeoutError(f"{text!r} is not in {path}: {self.read_err()}")

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        """Return the exit code, negative if a signal has ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def has_workers(self):
        """Whether processes it started are still there; they are ended."""
        for _ in range(300):
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return False
            time.sleep(0.01)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return True


def sleep():
    """Sleep until a signal; one just before a single long sleep would be lost in it."""
    while True:
        time.sleep(0.1)


def limit_file_size(n_bytes):
    """Let writes beyond so many bytes of a file fail, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
