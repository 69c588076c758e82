"Time for tests of waiting: pauses pass at once."

import asyncio
import time


class Clock:
    "Stands in for `time` and `asyncio` in the module under test: a pause passes at once, and is remembered."

    def __init__(self):
        self.now, self.pauses = 1000.0, []

    def __getattr__(self, name):
        return getattr(asyncio, name)

    def monotonic(self):
        return self.now

    def time(self):
        return time.time()

    async def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
