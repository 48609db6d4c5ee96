"""Freed memory is kept up to a bound. A process of its own: the setting stays for its whole life."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource, sys
from pdc_sfm.memory import keep_freed
if sys.argv[1] == "keep" and not keep_freed():
    sys.exit("malloc is not glibc's")
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
def use():
    block = libc.malloc(20 << 20)
    ctypes.memset(block, 1, 20 << 20)
    libc.free(ctypes.c_void_p(block))
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_a_block_freed_and_asked_for_again_is_not_faulted_in_again():
    faults = {}
    for word in ("keep", "not"):
        done = subprocess.run([sys.executable, "-c", PROGRAM, word], capture_output=True, text=True)
        if "not glibc's" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        faults[word] = int(done.stdout)
    assert faults["keep"] < 50 < faults["not"]
