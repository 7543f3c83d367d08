"""Programs for the sample list of programming problems: one right answer and wrong ones for each.

The reference programs were written from the statements, by other algorithms than the ones that
made the expected outputs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True, slots=True)
class Solved:
    """`right` is accepted; `wrong` are plausible programs, each with the verdict that it earns."""

    right: str
    wrong: tuple[tuple[str, str], ...]


def _solved(right: str, *wrong: tuple[str, str]) -> Solved:
    return Solved(
        right=dedent(right).lstrip("\n"),
        wrong=tuple((verdict, dedent(code).lstrip("\n")) for verdict, code in wrong),
    )


_LOADS = _solved(
    """
    n, limit = map(int, input().split())
    loads, filled = 1, 0
    for weight in map(int, input().split()):
        if filled + weight > limit:
            loads, filled = loads + 1, 0
        filled += weight
    print(loads)
    """,
    (
        "wrong_answer",  # as if bags could be split
        """
        n, limit = map(int, input().split())
        total = sum(map(int, input().split()))
        print(-(-total // limit))
        """,
    ),
    (
        "wrong_answer",  # a load that is exactly full is ended too early
        """
        n, limit = map(int, input().split())
        loads, filled = 1, 0
        for weight in map(int, input().split()):
            if filled + weight >= limit:
                loads, filled = loads + 1, 0
            filled += weight
        print(loads)
        """,
    ),
)

_HOOKS = _solved(
    """
    import heapq
    import sys

    events, hooks = map(int, sys.stdin.readline().split())
    free = list(range(1, hooks + 1))
    taken = {}
    for line in sys.stdin:
        what, name = line.split()
        if what == "in":
            if free:
                taken[name] = heapq.heappop(free)
                print(taken[name])
            else:
                print("full")
        elif name in taken:
            heapq.heappush(free, taken.pop(name))
    """,
    (
        "wrong_answer",  # the hook freed last is given first
        """
        events, hooks = map(int, input().split())
        free = list(range(hooks, 0, -1))
        taken = {}
        for _ in range(events):
            what, name = input().split()
            if what == "in":
                if free:
                    taken[name] = free.pop()
                    print(taken[name])
                else:
                    print("full")
            elif name in taken:
                free.append(taken.pop(name))
        """,
    ),
    (
        "runtime_error",  # a guest without a hook leaves
        """
        events, hooks = map(int, input().split())
        free = set(range(1, hooks + 1))
        taken = {}
        for _ in range(events):
            what, name = input().split()
            if what == "out":
                free.add(taken.pop(name))
            elif free:
                taken[name] = min(free)
                free.remove(taken[name])
                print(taken[name])
            else:
                print("full")
        """,
    ),
)

_JURY = _solved(
    """
    count = int(input())
    marks = sorted(map(int, input().split()))
    if count > 2:
        marks = marks[1:-1]
    print(sum(marks) / len(marks))
    """,
    (
        "wrong_answer",  # leaves nothing out
        """
        count = int(input())
        print(sum(map(int, input().split())) / count)
        """,
    ),
    (
        "runtime_error",  # leaves out every mark that is highest or lowest
        """
        count = int(input())
        marks = list(map(int, input().split()))
        if count > 2:
            marks = [mark for mark in marks if min(marks) < mark < max(marks)]
        print(sum(marks) / len(marks))
        """,
    ),
    (
        "wrong_answer",  # two decimals are too few
        """
        count = int(input())
        marks = sorted(map(int, input().split()))
        if count > 2:
            marks = marks[1:-1]
        print(f"{sum(marks) / len(marks):.2f}")
        """,
    ),
)

_RAINY = _solved(
    """
    days = int(input())
    at_height = [0] * (2 * days + 1)
    height = days
    at_height[height] = 1
    lower = stretches = 0
    for day in input():
        if day == "R":
            lower += at_height[height]
            height += 1
        else:
            height -= 1
            lower -= at_height[height]
        stretches += lower
        at_height[height] += 1
    print(stretches)
    """,
    (
        "time_limit",  # looks at every stretch
        """
        days = int(input())
        diary = input()
        stretches = 0
        for first in range(days):
            balance = 0
            for day in diary[first:]:
                balance += 1 if day == "R" else -1
                stretches += balance > 0
        print(stretches)
        """,
    ),
    (
        "wrong_answer",  # counts the stretches with as many dry days, too
        """
        import bisect

        days = int(input())
        heights = [0]
        height = stretches = 0
        for day in input():
            height += 1 if day == "R" else -1
            stretches += bisect.bisect_right(heights, height)
            bisect.insort(heights, height)
        print(stretches)
        """,
    ),
)

_FERRIES = _solved(
    """
    import sys

    islands, ferries, start, goal, ready = map(int, sys.stdin.readline().split())
    timetable = sorted(tuple(map(int, line.split())) for line in sys.stdin)
    timetable.sort(key=lambda ferry: ferry[2])
    boards_from = {start: ready}
    best = None
    for departure, arrival, leaves, arrives in timetable:
        if boards_from.get(departure, 10**9) <= leaves:
            if arrival == goal:
                best = arrives if best is None else min(best, arrives)
            boards_from[arrival] = min(boards_from.get(arrival, 10**9), arrives + 5)
    print("no way" if best is None else best)
    """,
    (
        "wrong_answer",  # changes without the five minutes
        """
        islands, ferries, start, goal, ready = map(int, input().split())
        timetable = [tuple(map(int, input().split())) for _ in range(ferries)]
        reached = {start: ready}
        for departure, arrival, leaves, arrives in sorted(timetable, key=lambda row: row[2]):
            if reached.get(departure, 10**9) <= leaves:
                reached[arrival] = min(reached.get(arrival, 10**9), arrives)
        print(reached.get(goal, "no way"))
        """,
    ),
    (
        "wrong_answer",  # takes the list as sorted by time
        """
        islands, ferries, start, goal, ready = map(int, input().split())
        boards_from = {start: ready}
        best = 10**9
        for _ in range(ferries):
            departure, arrival, leaves, arrives = map(int, input().split())
            if boards_from.get(departure, 10**9) <= leaves:
                if arrival == goal:
                    best = min(best, arrives)
                boards_from[arrival] = min(boards_from.get(arrival, 10**9), arrives + 5)
        print("no way" if best == 10**9 else best)
        """,
    ),
    (
        "runtime_error",  # forgets that there may be no way
        """
        islands, ferries, start, goal, ready = map(int, input().split())
        timetable = [tuple(map(int, input().split())) for _ in range(ferries)]
        boards_from = {start: ready}
        for departure, arrival, leaves, arrives in sorted(timetable, key=lambda row: row[2]):
            if boards_from.get(departure, 10**9) <= leaves:
                boards_from[arrival] = min(boards_from.get(arrival, 10**9), arrives + 5)
        print(boards_from[goal] - 5)
        """,
    ),
)

_PONDS = _solved(
    """
    height, width = map(int, input().split())
    squares = [input() for _ in range(height)]
    water = {(r, c) for r in range(height) for c in range(width) if squares[r][c] == "~"}
    sizes = []
    while water:
        reached = [water.pop()]
        for r, c in reached:
            for beside in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                if beside in water:
                    water.remove(beside)
                    reached.append(beside)
        if all(0 < r < height - 1 and 0 < c < width - 1 for r, c in reached):
            sizes.append(len(reached))
    print(len(sizes), max(sizes, default=0))
    """,
    (
        "wrong_answer",  # joins squares at their corners
        """
        height, width = map(int, input().split())
        squares = [input() for _ in range(height)]
        water = {(r, c) for r in range(height) for c in range(width) if squares[r][c] == "~"}
        sizes = [0]
        while water:
            reached = [water.pop()]
            for r, c in reached:
                for beside in [(r + i, c + k) for i in (-1, 0, 1) for k in (-1, 0, 1)]:
                    if beside in water:
                        water.remove(beside)
                        reached.append(beside)
            if all(0 < r < height - 1 and 0 < c < width - 1 for r, c in reached):
                sizes.append(len(reached))
        print(len(sizes) - 1, max(sizes))
        """,
    ),
    (
        "runtime_error",  # forgets that there may be no pond
        """
        height, width = map(int, input().split())
        squares = [input() for _ in range(height)]
        water = {(r, c) for r in range(height) for c in range(width) if squares[r][c] == "~"}
        sizes = []
        while water:
            reached = [water.pop()]
            for r, c in reached:
                for beside in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                    if beside in water:
                        water.remove(beside)
                        reached.append(beside)
            if all(0 < r < height - 1 and 0 < c < width - 1 for r, c in reached):
                sizes.append(len(reached))
        print(len(sizes), max(sizes))
        """,
    ),
)

_STREAK = _solved(
    """
    class Solution:
        def longestStreak(self, steps: List[int], goal: int) -> int:
            runs = groupby(steps, key=lambda number: number >= goal)
            return max((len(list(days)) for counts, days in runs if counts), default=0)
    """,
    (
        "wrong_answer",  # loses the run that reaches the end
        """
        class Solution:
            def longestStreak(self, steps: List[int], goal: int) -> int:
                best = run = 0
                for number in steps:
                    if number >= goal:
                        run += 1
                    else:
                        best = max(best, run)
                        run = 0
                return best
        """,
    ),
    (
        "runtime_error",  # no day counts
        """
        class Solution:
            def longestStreak(self, steps: List[int], goal: int) -> int:
                text = "".join("x" if number >= goal else " " for number in steps)
                return len(sorted(text.split(), key=len)[-1])
        """,
    ),
)

_SIGNS = _solved(
    """
    class Solution:
        def shorten(self, text: str) -> str:
            words = text.split(" ")
            return " ".join(w if len(w) < 5 else f"{w[0]}{len(w) - 2}{w[-1]}" for w in words)
    """,
    (
        "wrong_answer",  # several spaces become one
        """
        class Solution:
            def shorten(self, text: str) -> str:
                words = text.split()
                return " ".join(w if len(w) < 5 else f"{w[0]}{len(w) - 2}{w[-1]}" for w in words)
        """,
    ),
    (
        "wrong_answer",  # shortens words of four
        """
        class Solution:
            def shorten(self, text: str) -> str:
                words = text.split(" ")
                return " ".join(w if len(w) < 4 else f"{w[0]}{len(w) - 2}{w[-1]}" for w in words)
        """,
    ),
)

_SEATS = _solved(
    """
    class Solution:
        def bestSeats(self, rows: List[str], group: int) -> List[int]:
            block = "." * group
            for index, row in enumerate(rows):
                middle = len(row) - group
                left = row.rfind(block, 0, middle // 2 + group)
                right = row.find(block, middle // 2 + 1)
                if left < 0 and right < 0:
                    continue
                if right < 0 or left >= 0 and middle - 2 * left <= 2 * right - middle:
                    return [index, left]
                return [index, right]
            return []
    """,
    (
        "wrong_answer",  # the first block of the row
        """
        class Solution:
            def bestSeats(self, rows: List[str], group: int) -> List[int]:
                for index, row in enumerate(rows):
                    if "." * group in row:
                        return [index, row.index("." * group)]
                return []
        """,
    ),
    (
        "wrong_answer",  # of two equally near blocks the right one
        """
        class Solution:
            def bestSeats(self, rows: List[str], group: int) -> List[int]:
                for index, row in enumerate(rows):
                    seats = range(len(row) - group, -1, -1)
                    free = [seat for seat in seats if row[seat : seat + group] == "." * group]
                    if free:
                        nearest = min(free, key=lambda seat: abs(2 * seat + group - len(row)))
                        return [index, nearest]
                return []
        """,
    ),
)

_NAPS = _solved(
    """
    from __future__ import annotations


    class Solution:
        def quietestNaps(self, noise: List[int], length: int, naps: int) -> int:
            sums = [0, *accumulate(noise)]

            @cache
            def quietest(end: int, left: int) -> float:
                if left == 0:
                    return 0
                if end < length:
                    return inf
                nap = sums[end] - sums[end - length]
                before = max(end - length - 1, 0)
                return min(quietest(end - 1, left), nap + quietest(before, left - 1))

            best = quietest(len(noise), naps)
            return -1 if best == inf else best
    """,
    (
        "wrong_answer",  # takes the quietest nap that is left, one after another
        """
        class Solution:
            def quietestNaps(self, noise: List[int], length: int, naps: int) -> int:
                hours = len(noise)
                starts = sorted(
                    range(hours - length + 1), key=lambda start: sum(noise[start : start + length])
                )
                chosen = []
                for start in starts:
                    if len(chosen) < naps and all(abs(start - one) > length for one in chosen):
                        chosen.append(start)
                if len(chosen) < naps:
                    return -1
                return sum(sum(noise[start : start + length]) for start in chosen)
        """,
    ),
    (
        "wrong_answer",  # one nap may follow another without an hour between them
        """
        class Solution:
            def quietestNaps(self, noise: List[int], length: int, naps: int) -> int:
                hours = len(noise)
                best = [[0] + [inf] * naps for _ in range(hours + 1)]
                for end in range(1, hours + 1):
                    for count in range(1, naps + 1):
                        best[end][count] = best[end - 1][count]
                        if end >= length:
                            nap = sum(noise[end - length : end])
                            plan = nap + best[end - length][count - 1]
                            best[end][count] = min(best[end][count], plan)
                return -1 if best[hours][naps] == inf else best[hours][naps]
        """,
    ),
)

SOLUTIONS: Mapping[str, Solved] = {
    "sample-1": _LOADS,
    "sample-2": _HOOKS,
    "sample-3": _JURY,
    "sample-4": _RAINY,
    "sample-5": _FERRIES,
    "sample-6": _PONDS,
    "sample-7": _STREAK,
    "sample-8": _SIGNS,
    "sample-9": _SEATS,
    "sample-10": _NAPS,
}
