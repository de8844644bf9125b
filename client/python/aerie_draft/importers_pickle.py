"""Walks the opcodes of a pickle and builds plain containers; calls and looks up nothing.

pickletools only takes the stream apart. What the opcodes mean is spelled out here for the few that
files of tensors need; all others are refused by name.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Collection

_MAX_STEPS = 10_000_000
_MARK = object()


class RefusedFile(ValueError):
    """The file holds what this reader does not read. The message names it."""


class Name:
    """A class or function that the pickle names; never looked up, let alone called."""

    def __init__(self, name: str):
        self.name = name


class PickleWalker:
    """Runs once.

    Args:
        known: Names that the pickle may mention; any other is refused.
        storage_of: What a persistent id stands for.
        made_by: What a call of a known name makes of a tuple of arguments.
        refuse: (seen, expected, what to do) -> the exception to raise.

    A stream that is out of order raises one of Python's own errors, or what the functions raise.
    """

    def __init__(
        self,
        known: Collection[str],
        storage_of: Callable,
        made_by: Callable,
        refuse: Callable[[str, str, str], RefusedFile],
    ):
        self._known = known
        self._storage_of = storage_of
        self._made_by = made_by
        self._refuse = refuse
        self._stack: list = []
        self._memo: dict[int, object] = {}

    def run(self, pickle: bytes):
        for step, (opcode, argument, _) in enumerate(pickletools.genops(pickle)):
            if step > _MAX_STEPS:
                raise self._refuse("its pickle is too long", "a few tensors", "split the file")
            if opcode.name == "STOP":
                (result,) = self._stack
                if result is _MARK or isinstance(result, Name):
                    raise TypeError("the result is no value")
                return result
            operation = _OPERATIONS.get(opcode.name)
            if operation is None:
                raise self._refuse(
                    f"its pickle uses the operation {opcode.name}",
                    "tensors in dicts, lists and tuples",
                    "save only such",
                )
            operation(self, argument)
        raise ValueError("it does not end")

    def _skip(self, argument) -> None:
        pass

    def _push(self, argument) -> None:
        self._stack.append(argument)

    def _since_mark(self) -> list:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError("no mark")
        items = self._stack[at + 1 :]
        del self._stack[at:]
        return items

    def _short_tuple(self, count: int) -> None:
        items = tuple(self._stack[-count:])
        if len(items) != count or any(item is _MARK for item in items):
            raise IndexError("too few items for a tuple")
        del self._stack[-count:]
        self._push(items)

    def _dict(self, argument) -> None:
        items = self._since_mark()
        self._push({})
        self._set(items)

    def _set(self, items: list) -> None:
        container = self._stack[-1]
        if type(container) is not dict:
            raise TypeError("items are set in what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, int):
                raise TypeError("a key is neither text nor a number")
            container[key] = value

    def _set_one(self, argument) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set([key, value])

    def _append(self, items: list) -> None:
        container = self._stack[-1]
        if type(container) is not list:
            raise TypeError("items are appended to what is no list")
        container.extend(items)

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _name(self, name: str) -> None:
        if name not in self._known:
            raise self._refuse(
                f"its pickle names {name}, which this reader does not run or build",
                "tensors in dicts, lists and tuples",
                "save only such; do not open this file with torch.load unless you trust whoever "
                "made it",
            )
        self._push(Name(name))

    def _stack_name(self, argument) -> None:
        attribute, module = self._stack.pop(), self._stack.pop()
        self._name(f"{module}.{attribute}")

    def _call(self, argument) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, Name) or type(arguments) is not tuple:
            raise TypeError("a call of what is no function")
        self._push(self._made_by(function, arguments))


_OPERATIONS: dict[str, Callable[[PickleWalker, object], None]] = {
    "PROTO": PickleWalker._skip,
    "FRAME": PickleWalker._skip,
    "MARK": lambda walker, _: walker._push(_MARK),
    "NONE": lambda walker, _: walker._push(None),
    "NEWTRUE": lambda walker, _: walker._push(True),
    "NEWFALSE": lambda walker, _: walker._push(False),
    "BININT": PickleWalker._push,
    "BININT1": PickleWalker._push,
    "BININT2": PickleWalker._push,
    "LONG1": PickleWalker._push,
    "BINFLOAT": PickleWalker._push,
    "BINUNICODE": PickleWalker._push,
    "SHORT_BINUNICODE": PickleWalker._push,
    "BINUNICODE8": PickleWalker._push,
    "EMPTY_DICT": lambda walker, _: walker._push({}),
    "EMPTY_LIST": lambda walker, _: walker._push([]),
    "EMPTY_TUPLE": lambda walker, _: walker._push(()),
    "TUPLE1": lambda walker, _: walker._short_tuple(1),
    "TUPLE2": lambda walker, _: walker._short_tuple(2),
    "TUPLE3": lambda walker, _: walker._short_tuple(3),
    "TUPLE": lambda walker, _: walker._push(tuple(walker._since_mark())),
    "LIST": lambda walker, _: walker._push(walker._since_mark()),
    "DICT": PickleWalker._dict,
    "APPEND": lambda walker, _: walker._append([walker._stack.pop()]),
    "APPENDS": lambda walker, _: walker._append(walker._since_mark()),
    "SETITEM": PickleWalker._set_one,
    "SETITEMS": lambda walker, _: walker._set(walker._since_mark()),
    "BINPUT": PickleWalker._put,
    "LONG_BINPUT": PickleWalker._put,
    "MEMOIZE": lambda walker, _: walker._put(len(walker._memo)),
    "BINGET": lambda walker, index: walker._push(walker._memo[index]),
    "LONG_BINGET": lambda walker, index: walker._push(walker._memo[index]),
    "GLOBAL": lambda walker, name: walker._name(name.replace(" ", ".", 1)),
    "STACK_GLOBAL": PickleWalker._stack_name,
    "BINPERSID": lambda walker, _: walker._push(walker._storage_of(walker._stack.pop())),
    "REDUCE": PickleWalker._call,
}
