"""What is known of the program under test: sanitizers take memory of their own."""
import pathlib

from servers import NESTGUARD

SANITIZED = any(mark in pathlib.Path(NESTGUARD).read_bytes()
                for mark in (b"__asan_init", b"__tsan_init"))
