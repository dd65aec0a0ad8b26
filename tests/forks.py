# SPDX-License-Identifier: BSD-3-Clause
"""Run a function in a fork, so that it can be killed or denied resources.

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
    """A function in its own process; its SystemExit is the exit code.

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
            # In the background or under nohup, pytest ignores these signals.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.alarm(600)  # end it even if the test is lost
            # A fork does not copy the threads of a pool that earlier tests used.
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
        """Wait until a file contains a text."""
        for _ in range(6000):
            if path.exists() and text in path.read_text():
                return
            time.sleep(0.01)
        raise TimeoutError(f"{text!r} is not in {path}: {self.read_err()}")

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        """Return the exit code, negative if it was killed by a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def has_workers(self):
        """End child processes that are still running; return whether there were any."""
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
    """Sleep in short steps until a signal, so that no signal is missed."""
    while True:
        time.sleep(0.1)


def limit_file_size(n_bytes):
    """Make writes beyond a file size fail, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
