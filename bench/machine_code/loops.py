"""The loops of a kernel, and the shortest way around each: what a warp issues where nothing rare happens."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from machine_code.listing import Instruction, Listing, Place

_ENDS = ("EXIT", "RET", "BRX", "JMX", "KILL", "BPT")
_JUMPS = ("BRA", "JMP", "BRX", "JMX")


@dataclass(frozen=True)
class Block:
    """Instructions [begin, end) that are left at their end alone, and the blocks that may follow."""

    begin: int
    end: int
    following: tuple[int, ...]


def _is_collective_detour(instruction: Instruction) -> bool:
    """Whether this branch is taken by warps alone whose lanes are apart."""
    return instruction.opcode == "BRA.DIV" or instruction.opcode.startswith("WARPSYNC.COLLECTIVE")


class Flow:
    """The blocks of a kernel and the ways between them."""

    def __init__(self, kernel: Listing) -> None:
        self.kernel = kernel
        targets = {at: self._targets(at) for at in range(len(kernel.code))}
        starts = {0, *(at for found in targets.values() for at in found), *kernel.labels.values()}
        starts |= {at + 1 for at in targets if targets[at] or self._ends(at)}
        self._starts = sorted(at for at in starts if at < len(kernel.code))
        self._index = {at: i for i, at in enumerate(self._starts)}
        ends = [*self._starts[1:], len(kernel.code)]
        self.blocks = [
            Block(begin, end, self._following(end - 1, targets[end - 1], end))
            for begin, end in zip(self._starts, ends, strict=True)
        ]

    def code_of(self, block: int) -> Sequence[Instruction]:
        """The instructions of a block."""
        return self.kernel.code[self.blocks[block].begin : self.blocks[block].end]

    def _ends(self, at: int) -> bool:
        return self.kernel.code[at].opcode.startswith(_ENDS)

    def _targets(self, at: int) -> list[int]:
        instruction = self.kernel.code[at]
        if instruction.opcode.startswith("BSYNC") or instruction.opcode.startswith("BREAK"):
            return []  # lanes meet again: the next instruction follows
        if not instruction.opcode.startswith(_JUMPS) or _is_collective_detour(instruction):
            return []
        return [self.kernel.labels[name] for name in instruction.targets if name in self.kernel.labels]

    def _following(self, last: int, targets: Sequence[int], end: int) -> tuple[int, ...]:
        instruction = self.kernel.code[last]
        always = not instruction.conditional and (bool(targets) or self._ends(last))
        # `BRA.U UP0` and `BRA UP0` have their condition among the operands.
        if targets and re.match(r"!?U?P\d", instruction.operands):
            always = False
        found = list(targets)
        if not always:
            found.append(end)
        return tuple(self._index[at] for at in found if at in self._index)

    @cached_property
    def loops(self) -> list[Loop]:
        """All natural loops; those that begin at the same block are one."""
        dominators = self._dominators()
        bodies: dict[int, set[int]] = {}
        for block, made in enumerate(self.blocks):
            for head in made.following:
                if head in dominators.get(block, ()):
                    bodies.setdefault(head, {head}).update(self._body(head, block))
        return [Loop(self, head, frozenset(body)) for head, body in sorted(bodies.items())]

    @cached_property
    def _before(self) -> list[list[int]]:
        before: list[list[int]] = [[] for _ in self.blocks]
        for block in self._reached():
            for after in self.blocks[block].following:
                before[after].append(block)
        return before

    def _dominators(self) -> Mapping[int, set[int]]:
        order = self._reached()
        found = {0: {0}}
        changed = True
        while changed:
            changed = False
            for block in order[1:]:
                known = [found[b] for b in self._before[block] if b in found]
                now = set.intersection(*known) | {block} if known else {block}
                if found.get(block) != now:
                    found[block] = now
                    changed = True
        return found

    def _reached(self) -> list[int]:
        """Blocks that can be reached, in an order in which most come after those before them."""
        order: list[int] = []
        seen = {0}
        stack: list[tuple[int, Iterator[int]]] = [(0, iter(self.blocks[0].following))]
        while stack:
            block, rest = stack[-1]
            after = next((b for b in rest if b not in seen), None)
            if after is None:
                order.append(block)
                stack.pop()
            else:
                seen.add(after)
                stack.append((after, iter(self.blocks[after].following)))
        return order[::-1]

    def _body(self, head: int, latch: int) -> set[int]:
        body, stack = {head, latch}, [latch]
        while stack:
            block = stack.pop()
            if block == head:
                continue
            for before in self._before[block]:
                if before not in body:
                    body.add(before)
                    stack.append(before)
        return body


@dataclass(frozen=True)
class Loop:
    """A loop of a kernel."""

    flow: Flow
    head: int
    body: frozenset[int]

    @property
    def size(self) -> int:
        """Instructions of all its blocks."""
        return sum(len(self.flow.code_of(block)) for block in self.body)

    def share(self, places: frozenset[Place]) -> float:
        """Which part of the loop's own instructions came from these places, inlined or not."""
        code = [instruction for block in self.body for instruction in self.flow.code_of(block)]
        return sum(bool(instruction.places & places) for instruction in code) / len(code)

    def closes_in(self, places: frozenset[Place]) -> bool:
        """Whether what jumps back to its head came from these places: a loop around it may be made of them too."""
        latches = [block for block in self.body if self.head in self.flow.blocks[block].following]
        return any(self.flow.code_of(block)[-1].places & places for block in latches)

    def count(self, pattern: str) -> int:
        """How many instructions of all its blocks have such an opcode."""
        code = (instruction for block in self.body for instruction in self.flow.code_of(block))
        return sum(re.search(pattern, instruction.opcode) is not None for instruction in code)

    def holds(self, other: Loop) -> bool:
        """Whether the other loop is inside of this one."""
        return other.head != self.head and other.body < self.body

    def way_around(self, needed: Mapping[str, int], through: Sequence[frozenset[Place]] = ()) -> list[Instruction]:
        """The shortest way from its head to its head again that does what is asked for.

        Args:
            needed: opcodes (patterns) that it has, so many times at least.
            through: places, of each of which it has an instruction.

        Raises:
            ValueError: there is none, or a loop is in the way.
        """
        patterns = [(re.compile(pattern), wanted) for pattern, wanted in needed.items()]
        done = (*(wanted for _, wanted in patterns), *(1 for _ in through))
        inner = {loop.head for loop in self.flow.loops if self.holds(loop)}
        tie = count()
        queue: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...]]] = [
            (0, next(tie), self.head, (0,) * len(done), ())
        ]
        seen: set[tuple[int, tuple[int, ...]]] = set()
        while queue:
            length, _, block, have, way = heapq.heappop(queue)
            if way and block == self.head:
                if have == done:
                    return self._code(way, inner)
                continue
            if (block, have) in seen:
                continue
            seen.add((block, have))
            code = self.flow.code_of(block)
            found = [sum(bool(pattern.search(i.opcode)) for i in code) for pattern, _ in patterns]
            found += [sum(bool(i.places & places) for i in code) for places in through]
            now = tuple(min(wanted, got + more) for wanted, got, more in zip(done, have, found, strict=True))
            for after in self.flow.blocks[block].following:
                if after in self.body:
                    heapq.heappush(queue, (length + len(code), next(tie), after, now, (*way, block)))
        raise ValueError(f"{self.flow.kernel.name}: no way around its loop has {dict(needed)}")

    def _code(self, way: Sequence[int], inner: set[int]) -> list[Instruction]:
        if inside := inner.intersection(way):
            raise ValueError(f"{self.flow.kernel.name}: a loop is in the way, at instructions {sorted(inside)}")
        return [instruction for block in way for instruction in self.flow.code_of(block)]
