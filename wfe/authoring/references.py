"""References: what a body handles instead of values, and how they become values.

Composing, a reference stands for the input, for what a step will return, for what a transform will
compute, or for an item of one of these. It has no methods of ours: every name is a data key.
Running, `Template.resolve` replaces the references of a template by values.

A template is a value in its JSON form with references in place of some of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from wfe.authoring.misuse import Refusing
from wfe.authoring.places import refuse
from wfe.authoring.shapes import Shape
from wfe.errors import ReferenceMisuse
from wfe.plain import plain

if TYPE_CHECKING:
    from wfe.authoring.composition import Composition


class Values(Protocol):
    """What an execution has come to, as far as references ask. Given by the runtime."""

    #: What has been computed already, by node number. Only what cannot change any more is in it.
    cache: dict[int, Any]

    def input(self) -> Any:
        """The workflow's input, decoded anew."""
        ...

    def output(self, step: str) -> Any:
        """What the step returned, decoded anew; None where it has returned nothing."""
        ...

    def settled(self, step: str) -> bool:
        """Whether `output` will stay what it is."""
        ...

    def guard(self, name: str) -> bool | None:
        """What the condition came to; None while it has not been evaluated."""
        ...


#: Gives a value of an execution without awaiting anything.
Read = Callable[[Values], Any]


class Source(Protocol):
    """Where a reference's value comes from."""

    #: The steps whose output it is made of.
    depends: frozenset[str]
    #: True: `value` is kept by others too, and may be no JSON; who hands it out copies it.
    shared: bool

    @property
    def read(self) -> Read | None:
        """Gives the value at once; None where it has to be awaited."""
        ...

    async def value(self, values: Values) -> Any: ...

    def spelling(self) -> str:
        """As the user would write it."""
        ...


class Reference(Refusing):
    """Stands for a value inside a body. Items and attributes are references again."""

    __slots__ = ("_wfe_body", "_wfe_shape", "_wfe_source")

    _wfe_body: Composition
    _wfe_source: Source
    _wfe_shape: Shape

    def __init__(self, body: Composition, source: Source, shape: Shape) -> None:
        object.__setattr__(self, "_wfe_body", body)
        object.__setattr__(self, "_wfe_source", source)
        object.__setattr__(self, "_wfe_shape", shape)

    def __getattr__(self, name: str) -> Reference:
        spelled = self._wfe_source.spelling()
        if name.startswith("_"):
            raise refuse(
                ReferenceMisuse,
                f"{spelled} is a reference, it has no attribute {name!r}.",
                hint=f"A data key of this name is reached as {spelled}[{name!r}].",
            )
        key, shape = self._wfe_shape.attribute(name, spelled)
        return Reference(self._wfe_body, ItemSource(self._wfe_source, key, attribute=name), shape)

    def __getitem__(self, key: Any) -> Reference:
        if type(key) not in (str, int, slice, Reference) or has_references(_parts(key)):
            raise refuse(
                ReferenceMisuse,
                f"{self._wfe_source.spelling()}[{key!r}]: an item is named by text, "
                "by a number or by another reference.",
                hint="Write transform(..., fn=lambda value: ...).",
            )
        source = ItemSource(self._wfe_source, key)
        return Reference(self._wfe_body, source, self._wfe_shape.item(key))

    def __repr__(self) -> str:
        return f"<reference {self._wfe_source.spelling()}>"


class InputSource:
    """The input of the workflow, as its annotation makes it: with defaults filled in."""

    #: Its place in `Values.cache`; transforms count from 1.
    NUMBER = 0

    depends: frozenset[str] = frozenset()

    def __init__(self, name: str, normalise: Callable[[Any], Any] | None) -> None:
        """`normalise` makes it fit its annotation; None: it has none."""
        self._name = name
        self._normalise = normalise
        self.shared = normalise is not None

    def read(self, values: Values) -> Any:
        if self._normalise is None:
            return values.input()
        cache = values.cache
        if self.NUMBER not in cache:
            cache[self.NUMBER] = plain(self._normalise(values.input()))
        return cache[self.NUMBER]

    async def value(self, values: Values) -> Any:
        return self.read(values)

    def spelling(self) -> str:
        return self._name


class OutputSource:
    """What a step returned."""

    shared = False

    def __init__(self, step: str) -> None:
        self.step = step
        self.depends = frozenset((step,))

    def read(self, values: Values) -> Any:
        return values.output(self.step)

    async def value(self, values: Values) -> Any:
        return self.read(values)

    def spelling(self) -> str:
        return self.step


class ItemSource:
    """An item or attribute of a value; None where there is none.

    Text and keys name entries of a mapping, else attributes of what a transform returned; numbers
    and slices name places in a list or text.
    """

    def __init__(self, base: Source, key: Any, *, attribute: str | None = None) -> None:
        """`attribute` is how the user named it, where that was as an attribute."""
        self._base = base
        self._key = key
        self._attribute = attribute
        self.depends = base.depends | depends_on(key)
        self.shared = base.shared
        self.read = self._reader()

    def _reader(self) -> Read | None:
        read_base, read_key = self._base.read, reader(self._key)
        if read_base is None or read_key is None:
            return None
        return lambda values: self._item(read_base(values), read_key(values))

    async def value(self, values: Values) -> Any:
        container = await self._base.value(values)
        return self._item(container, await substitute(self._key, values))

    def _item(self, container: Any, key: Any) -> Any:
        try:
            if type(container) is dict or isinstance(container, Mapping):
                return container.get(key)
            if not isinstance(key, str):
                return container[key]
        except (TypeError, LookupError):
            return None
        if isinstance(container, _WITHOUT_ATTRIBUTES):
            return None
        return getattr(container, self._attribute or key, None)

    def spelling(self) -> str:
        if self._attribute is not None:
            return f"{self._base.spelling()}.{self._attribute}"
        key = self._key
        inner = key._wfe_source.spelling() if type(key) is Reference else repr(key)
        return f"{self._base.spelling()}[{inner}]"


#: Their attributes are Python's, not data.
_WITHOUT_ATTRIBUTES = (str, int, float, list, tuple, type(None))


def _parts(key: Any) -> tuple[Any, ...]:
    return (key.start, key.stop, key.step) if type(key) is slice else ()


def references_in(template: Any) -> Iterator[Reference]:
    """Every reference of a template, or of a user's containers, which may be deep or contain
    themselves."""
    seen: set[int] = set()
    pending: list[Any] = [template]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is Reference:
            yield item
        elif kind in _CONTAINERS and id(item) not in seen:
            seen.add(id(item))
            pending.extend(reversed(list(item.values() if kind is dict else item)))


_CONTAINERS = frozenset({dict, list, tuple, set, frozenset})


def has_references(template: Any) -> bool:
    return next(references_in(template), None) is not None


def depends_on(template: Any) -> frozenset[str]:
    """The steps whose output the template is made of."""
    steps: set[str] = set()
    for reference in references_in(template):
        steps |= reference._wfe_source.depends
    return frozenset(steps)


def is_shared(template: Any) -> bool:
    """Whether what it resolves to must be copied before it is handed out."""
    return any(reference._wfe_source.shared for reference in references_in(template))


def reader(template: Any) -> Read | None:
    """A function that does what `substitute` does, at once; None where something has to be awaited.

    Found once per template, so that a step whose arguments are at hand costs no coroutines.
    """
    kind = type(template)
    if kind is Reference:
        source: Source = template._wfe_source
        return source.read
    if kind not in (dict, list, tuple):
        return lambda _: template
    readers = [reader(part) for part in (template.values() if kind is dict else template)]
    reads = [read for read in readers if read is not None]
    if len(reads) < len(readers):
        return None
    if kind is dict:
        keys = tuple(template)
        return lambda values: {key: read(values) for key, read in zip(keys, reads, strict=True)}
    return lambda values: kind([read(values) for read in reads])


class Template:
    """A template that is resolved in many executions."""

    __slots__ = ("_is_shared", "_read", "_template")

    def __init__(self, template: Any) -> None:
        self._template = template
        self._read = reader(template)
        self._is_shared = is_shared(template)

    async def resolve(self, values: Values) -> Any:
        """The template with its references replaced by values; new containers, nobody else's.

        Raises:
            Exception: what a transform raised.
            NonSerializableValue: what a transform returned has no JSON form.
        """
        read = self._read
        value = await substitute(self._template, values) if read is None else read(values)
        return plain(value) if self._is_shared else value


async def substitute(template: Any, values: Values) -> Any:
    """The template with its references replaced by values, those that are shared not copied."""
    kind = type(template)
    if kind is Reference:
        return await template._wfe_source.value(values)
    if kind is dict:
        return {key: await substitute(item, values) for key, item in template.items()}
    if kind is list:
        return [await substitute(item, values) for item in template]
    if kind is tuple:
        return tuple([await substitute(item, values) for item in template])
    return template
