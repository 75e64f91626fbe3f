"""Reads the data in a pickle without running it.

A pickle is a program that may call anything that can be imported. This reader has no import and no call: a global that is
needed to describe tensors is looked up in a table of what it stands for, and every other one is an error. Objects are plain
dicts, lists, tuples, numbers and texts. What they take in memory is counted before they are made (limits.py), and keys of dicts
are plain: hashing, comparing or printing an object that stands in itself has no end.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterable
from typing import IO, Any

from trueline import limits
from trueline.errors import TruelineError, Unreadable
from trueline.reading import Bounded, reading, shortened

# What a global stands for: it is given the arguments that the pickle would have called it with.
StandIn = Callable[..., Any]

_PUSHES_ITS_ARGUMENT = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES "
    "BINBYTES8 BYTEARRAY8 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_SHORT_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()
# What an object and a place in a list or dict take in memory, about.
_OBJECT, _ITEM, _PAIR = 72, 8, 100


class Global:
    """A name that the pickle refers to, with what it stands for."""

    def __init__(self, name: str, stand_in: StandIn) -> None:
        self.name = name
        self.stand_in = stand_in


def read_pickle(
    file: IO[bytes], where: str, known: Callable[[str], StandIn | None], persistent: Callable[[Any], Any] | None = None
) -> Any:
    """The object that the next pickle of an open file describes. `known` gives the stand-in of a dotted name."""
    with reading(where):
        return _Machine(where, known, persistent).run(file)


class _Machine:
    def __init__(self, where: str, known: Callable[[str], StandIn | None], persistent: Callable[[Any], Any] | None) -> None:
        self.where = where
        self.known = known
        self.persistent = persistent
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.spent = 0

    def run(self, file: IO[bytes]) -> Any:
        # It asks for reading and telling the place alone.
        bounded: Any = Bounded(file, limits.PICKLE_ARGUMENT_BYTES)
        for count, (opcode, argument, _) in enumerate(pickletools.genops(bounded)):
            if count > limits.PICKLE_INSTRUCTIONS:
                raise Unreadable(
                    f"{self.where} has a pickle of more than {limits.PICKLE_INSTRUCTIONS:,} instructions: that is no checkpoint."
                )
            self._spend(_OBJECT + (len(argument) if isinstance(argument, str | bytes | bytearray) else 0))
            self._step(opcode.name, argument)
        if len(self.stack) != 1:
            raise ValueError(f"{len(self.stack)} objects are left at its end")
        return self.stack[0]

    def _spend(self, size: int) -> None:
        self.spent += size
        if self.spent > limits.PICKLE_BYTES:
            raise Unreadable(
                f"{self.where} has a pickle whose objects take more than {limits.PICKLE_BYTES >> 20} MiB: that is no checkpoint."
            )

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _PUSHES_ITS_ARGUMENT:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _SHORT_TUPLES:
            count = _SHORT_TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        elif name in {"PROTO", "FRAME", "STOP"}:
            pass
        elif name == "MARK":
            stack.append(_MARK)
        elif name in {"PUT", "BINPUT", "LONG_BINPUT"}:
            self.memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in {"GET", "BINGET", "LONG_BINGET"}:
            stack.append(self.memo[argument])
        elif name == "POP":
            stack.pop()
        elif name == "POP_MARK":
            self._since_mark()
        elif name == "DUP":
            stack.append(stack[-1])
        elif name in {"EMPTY_LIST", "EMPTY_SET"}:
            stack.append([])
        elif name == "LIST":
            stack.append(self._since_mark())
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name in {"TUPLE", "FROZENSET"}:
            stack.append(tuple(self._since_mark()))
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "DICT":
            items = self._since_mark()
            stack.append(self._put({}, zip(items[::2], items[1::2], strict=True)))
        elif name == "APPEND":
            item = stack.pop()
            _as_list(stack[-1]).append(item)
        elif name in {"APPENDS", "ADDITEMS"}:
            items = self._since_mark()
            _as_list(stack[-1]).extend(items)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            self._put(_as_dict(stack[-1]), [(key, value)])
        elif name == "SETITEMS":
            items = self._since_mark()
            self._put(_as_dict(stack[-1]), zip(items[::2], items[1::2], strict=True))
        elif name == "GLOBAL":
            stack.append(self._global(argument.replace(" ", ".", 1)))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            if not isinstance(module, str) or not isinstance(attribute, str):
                raise TypeError("a name is no text")
            stack.append(self._global(f"{module}.{attribute}"))
        elif name in {"REDUCE", "NEWOBJ"}:
            arguments = stack.pop()
            stack.append(self._stand_in(stack.pop(), arguments, {}))
        elif name == "NEWOBJ_EX":
            keywords, arguments = stack.pop(), stack.pop()
            stack.append(self._stand_in(stack.pop(), arguments, keywords))
        elif name == "BUILD":
            # Attributes of an object, such as the version numbers of a state dict: none of them is a tensor's value.
            stack.pop()
        elif name in {"PERSID", "BINPERSID"}:
            reference = argument if name == "PERSID" else stack.pop()
            if self.persistent is None:
                raise ValueError("it refers to something outside of itself")
            stack.append(self.persistent(reference))
        else:
            raise TruelineError(
                f"{self.where} uses the pickle instruction {name}, which no checkpoint of tensors needs. It was not run."
            )

    def _since_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError("an instruction has no start")
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    def _global(self, name: str) -> Global:
        stand_in = self.known(name)
        if stand_in is None:
            raise TruelineError(
                f"{self.where} refers to {shortened(name)}, which no checkpoint of tensors needs and which could run code. "
                "Nothing was run. Save tensors alone, such as torch.save(model.state_dict(), path)."
            )
        return Global(name, stand_in)

    def _put(self, target: dict[Any, Any], pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        for key, value in pairs:
            if not is_plain_key(key):
                raise TypeError(f"the key of a dict is a {type(key).__name__} that no checkpoint needs")
            self._spend(_PAIR)
            target[key] = value
        return target

    def _stand_in(self, called: Any, arguments: Any, keywords: Any) -> Any:
        if not isinstance(called, Global) or not isinstance(arguments, tuple) or not isinstance(keywords, dict):
            raise TypeError("it calls what is no function")
        # Whatever it makes of them is no larger than this; a call takes three bytes in the file, and its arguments can be shared.
        for each in (arguments, keywords, *arguments):
            if isinstance(each, list | tuple | str | bytes):
                self._spend(_ITEM * len(each))
            elif isinstance(each, dict):
                self._spend(_PAIR * len(each))
        made = called.stand_in(*arguments, **keywords)
        if type(made) is dict:
            self._spend(_PAIR * len(made))
        return made


def is_plain_key(key: Any) -> bool:
    """Whether the hash of an object costs next to nothing: that of a tuple in tuples can end the process."""
    if isinstance(key, tuple):
        return len(key) <= limits.KEY_ITEMS and all(not isinstance(each, tuple) and is_plain_key(each) for each in key)
    if isinstance(key, int):
        return -(1 << 63) <= key < 1 << 64
    return key is None or isinstance(key, str | bytes | float | Global)


def _as_list(target: Any) -> list[Any]:
    if not isinstance(target, list):
        raise TypeError(f"items are put into {type(target).__name__}")
    return target


def _as_dict(target: Any) -> dict[Any, Any]:
    if not isinstance(target, dict):
        raise TypeError(f"items are put into {type(target).__name__}")
    return target
