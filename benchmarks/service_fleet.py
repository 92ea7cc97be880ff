"""Processes of the service that are started, killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

_READY_S = 60.0
_STARTS = 5


@dataclass(slots=True)
class Member:
    """One process; a front end keeps its port when it is started again."""

    role: str
    port: int
    folder: Path
    process: asyncio.subprocess.Process | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Several processes on one store.

    Attributes:
        database: A PostgreSQL URL, or empty for SQLite in `folder`.
        workers: Documents at once in each process that works.
        tokens: Tenants, each of which calls with its name as its token; none: the service is open.
        quick: Whether dead processes are noticed in 2 s and not in 10.
    """

    folder: Path
    database: str
    engine_ms: float
    workers: int
    quick: bool
    tokens: Sequence[str] = ()
    members: list[Member] = field(default_factory=list)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the front ends listen."""
        return tuple(f"127.0.0.1:{member.port}" for member in self.members if member.role != "worker")

    def pid(self, number: int) -> int:
        """The process id of a member."""
        process = self.members[number].process
        return 0 if process is None else process.pid

    def cpu_s(self) -> float:
        """Processor time that the service's own processes have used; a database server's is not among it."""
        ticks = 0
        for member in self.members:
            for pid in _family(member):
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    async def start(self, member: Member) -> None:
        """Start a process and wait until it takes calls or work up; one that cannot start is started again.

        That is what systemd or Kubernetes do; its connection to the database may have been cut just then.
        """
        for _ in range(_STARTS - 1):
            if await self._start(member):
                return
        if not await self._start(member):
            raise RuntimeError(f"a {member.role} process did not come up: its log lies in {self.folder}")

    async def _start(self, member: Member) -> bool:
        told = {
            "folder": str(member.folder),
            "database": self.database,
            "port": member.port,
            "role": member.role,
            "engine_ms": self.engine_ms,
            "workers": self.workers,
            "quick": self.quick,
            "tokens": list(self.tokens),
        }
        # What it has to say stays beside the store, for whoever looks for the reason of a loss.
        with (self.folder / f"{self.members.index(member)}.log").open("ab") as log:
            member.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "benchmarks.service_process",
                json.dumps(told),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        async with asyncio.timeout(_READY_S):
            line = await member.process.stdout.readline() if member.process.stdout else b""
        if not line:
            await member.process.wait()
        return bool(line)

    async def kill(self, member: Member) -> None:
        """End a process, and the worker process that it has, as a power cut would."""
        for pid in _family(member):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if member.process is not None:
            await member.process.wait()

    async def rampage(self, luck: random.Random, seconds: float, pause: float) -> int:
        """Kill one process after the other at random, each started again; gives how many were killed."""
        loop = asyncio.get_running_loop()
        ends, kills = loop.time() + seconds, 0
        while loop.time() < ends:
            await asyncio.sleep(luck.uniform(0.3, 1.0) * pause)
            victim = luck.choice(self.members)
            await self.kill(victim)
            kills += 1
            await asyncio.sleep(luck.uniform(0.0, 0.5) * pause)
            await self.start(victim)
        return kills


@asynccontextmanager
async def fleet(
    folder: Path,
    roles: Sequence[str],
    *,
    database: str = "",
    engine_ms: float = 0.0,
    workers: int = 2,
    quick: bool = False,
    tokens: Sequence[str] = (),
) -> AsyncIterator[Fleet]:
    """A fleet that is up; ended in order afterwards.

    Args:
        roles: `all`, `front` or `worker`, one for each process.
    """
    made = Fleet(folder, database, engine_ms, workers, quick, tokens)
    for number, role in enumerate(roles):
        # On SQLite they share the folder; on PostgreSQL each has one of its own, as on machines of their own.
        place = folder / str(number) if database else folder
        made.members.append(Member(role, 0 if role == "worker" else _free_port(), place))
    try:
        for member in made.members:
            await made.start(member)
        yield made
    finally:
        for member in made.members:
            if member.process is not None and member.process.returncode is None:
                member.process.send_signal(signal.SIGTERM)
        for member in made.members:
            if member.process is not None:
                try:
                    async with asyncio.timeout(30):
                        await member.process.wait()
                except TimeoutError:
                    await made.kill(member)


def _family(member: Member) -> list[int]:
    """The ids of a member's process, while it runs, and of those that it has started."""
    if member.process is None or member.process.returncode is not None:
        return []
    pid = member.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *map(int, children)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
