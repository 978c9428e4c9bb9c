"""Putting a workflow together: steps, what they wait for, what the whole returns.

Owns the graph while it is built. It runs nothing and asks no store: whatever is wrong is refused
here, on the line that says it, with the names in the message. What comes out is a plan.

A step can name only steps that exist, so there are no cycles. The same builder serves a workflow
that is sent, a sub-workflow, and the steps that a running step adds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Any,
    Concatenate,
    Final,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
)

from holdfast.core.errors import ConfigError, Noun, PayloadError
from holdfast.core.options import checks
from holdfast.core.payload.codec import DEFAULT_LIMIT
from holdfast.core.records import Submission
from holdfast.core.result import TaskError
from holdfast.core.workflows.arguments import check_arguments, check_value, take_out
from holdfast.core.workflows.inputs import Fill, encode_inputs, template
from holdfast.core.workflows.placeholder import (
    NotYetKnown,
    Placeholder,
    Reference,
    reference_of,
)
from holdfast.core.workflows.plan import AddedPlan, StepPlan, SubWorkflow
from holdfast.core.workflows.step import Step, StepEnd, Steps
from holdfast.core.workflows.step_options import PLAIN, StepChoice, StepOptions, read_options
from holdfast.core.workflows.stepable import Stepable, StepForm
from holdfast.core.workflows.value_kind import NoMember, item_kind
from holdfast.core.workflows.waits import StepWaits

__all__ = ["MOST_STEPS", "StepBuilder", "StepMaker"]

P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")

MOST_STEPS: Final = 20_000
"""How many steps a workflow may have unless it says otherwise."""
_NEVER_RETURNED: Final = {
    "error": "is there only if that step fails",
    "failure": "is there only if a step fails",
    "first": "does not need the steps that it names",
    "successes": "does not need the steps that it names",
}


@dataclass(slots=True, eq=False)
class _Draft:
    """A step as it was built."""

    name: str
    task: Submission
    waits: StepWaits
    fills: list[Fill]
    optional: bool
    hidden: str | None
    map: dict[str, Any] | None = None
    """The settings of a map over a list that is not known yet."""


class StepMaker(ABC):
    """Adds steps to a workflow."""

    def step(self, task: Stepable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Step[R]:
        """Add a call of a task, or a sub-workflow; its arguments may be values of other steps."""
        return self._step(task, args, kwargs)

    def map(
        self,
        task: Stepable[Concatenate[X, P], R],
        items: Iterable[X],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Steps[R]:
        """Add a call for each item, which comes first among its arguments.

        The list may be a value of another step: then the calls are added when that has run.
        """
        return self._map(task, items, args, kwargs)

    @abstractmethod
    def _step(
        self, task: Stepable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Step[Any]: ...

    @abstractmethod
    def _map(
        self,
        task: Stepable[..., Any],
        items: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Steps[Any]: ...


class StepBuilder(StepMaker):
    """A graph of steps that is being built."""

    def __init__(self, name: str, *, max_steps: int = MOST_STEPS, noun: Noun = "workflow") -> None:
        self.name = checks.task_name(name)
        """The workflow's name, or that of the task that adds steps."""
        self._noun = noun
        self.max_steps = checks.at_least(1, max_steps, "max_steps")
        self._drafts: list[_Draft] = []
        self._returned: set[int] = set()
        self._steps: list[Step[Any]] = []
        self._names: set[str] = set()
        self._uses: dict[str, int] = {}
        self._home: object | None = None

    @property
    def steps(self) -> Sequence[Step[Any]]:
        """The steps so far."""
        return tuple(self._steps)

    @property
    def error(self) -> TaskError:
        """The first failure among all steps. Who takes it runs once, and only if there is one."""
        reference = Reference(self, "failure", (), TaskError, "wf.error")
        return cast("TaskError", Placeholder(reference))

    @property
    def ended(self) -> StepEnd:
        """For `after=`: all steps have ended, however, but those that wait for this too."""
        return StepEnd(self, (), "wf.ended", is_of_all=True, cleanup=True)

    def options(self, **options: Unpack[StepOptions]) -> StepMaker:
        """What is said of the next step: name, after, optional."""
        return _Optioned(self, read_options(options))

    def added(
        self, returns: Any, kind: Any, *, limit: int, workflow: SubWorkflow | None = None
    ) -> AddedPlan:
        """The plan of steps that a running step adds, and the value that they leave it."""
        text = self.returns(returns, kind, limit=limit)
        return AddedPlan(steps=self.plan(), returns=text, workflow=workflow)

    def as_part(self, limit: int, *, is_whole: bool = False) -> AddedPlan:
        """The plan of a workflow that a step hands over to; who sends knows how. `is_whole`: the
        step is all that there is of it yet, so it gets no row of its own."""
        raise NotImplementedError

    def plan(self) -> tuple[StepPlan, ...]:
        """The steps as they are sent."""
        required = self._required()
        return tuple(
            StepPlan(
                name=draft.name,
                task=draft.task,
                edges=draft.waits.as_edges(),
                needed=draft.waits.needed,
                required=needed,
                tail=draft.waits.tail,
                handler=draft.waits.handler,
                cleanup=draft.waits.cleanup,
                hidden=draft.hidden,
                inputs=encode_inputs(draft.fills, draft.map),
            )
            for draft, needed in zip(self._drafts, required, strict=True)
        )

    def returns(self, value: Any, kind: Any = Any, *, limit: int = DEFAULT_LIMIT) -> str | None:
        """The template of what the whole gives; refused if it is not what was promised."""
        if isinstance(value, Step | Steps):
            raise ConfigError(f"the {self._noun} {self.name!r} returns a step: {value.remedy()}")
        fills: list[Fill] = []
        cleaned = take_out(value, (), fills)
        what = f"the value{{}} that the {self._noun} {self.name!r} returns"
        check_value(value, kind, "", what, limit)
        for _, reference in fills:
            self._check_own(reference.owner, reference.text)
            why = _NEVER_RETURNED.get(reference.kind)
            if why is not None:
                raise ConfigError(
                    f"the {self._noun} {self.name!r} returns {reference.text}, which {why}: "
                    "return results"
                )
            for parent in reference.steps:
                self._check_returned(self._drafts[parent], reference.text)
                self._returned.add(parent)
        return None if cleaned is None and not fills else template(cleaned, fills, limit)

    def _check_returned(self, draft: _Draft, text: str) -> None:
        if draft.optional:
            raise ConfigError(
                f"the {self._noun} {self.name!r} returns {text} of a step that is optional: "
                "leave out optional=True"
            )
        if draft.waits.tail == "error" or "failure" in draft.waits.edges.values():
            raise ConfigError(
                f"the {self._noun} {self.name!r} returns {text} of a step that runs only if "
                "another fails: return results of steps that always run"
            )

    def _required(self) -> list[bool]:
        """Of each step whether the whole needs it."""
        spared: set[int] = set()
        needed = set(self._returned)
        for draft in self._drafts:
            for parent, how in draft.waits.taken.items():
                (needed if how == "other" else spared).add(parent)
        return [
            not draft.optional and (place in needed or place not in spared)
            for place, draft in enumerate(self._drafts)
        ]

    def _step(
        self,
        task: Stepable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        choice: StepChoice = PLAIN,
    ) -> Step[Any]:
        form = self._form(task, "step")
        return self._add(form, args, kwargs, choice, self._free_name(choice.name, form.step_name))

    def _map(
        self,
        task: Stepable[..., Any],
        items: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        choice: StepChoice = PLAIN,
    ) -> Steps[Any]:
        form = self._form(task, "map")
        reference = reference_of(items)
        if reference is None:
            given = self._items(items, form)
            name = self._free_name(choice.name, form.step_name)
            taken = next((n for i in range(len(given)) if (n := f"{name}[{i}]") in self._names), "")
            if taken:
                raise ConfigError(
                    f"the {self._noun} {self.name!r} has a step {taken!r} already: give the map "
                    "another name",
                    option="name",
                )
            steps = [
                self._add(form, (item, *args), kwargs, choice, f"{name}[{place}]")
                for place, item in enumerate(given)
            ]
            return Steps(self, name, form.result_kind, steps)
        name = self._free_name(choice.name, form.step_name)
        one = Placeholder(reference._replace(value=self._item_kind(reference)))
        whole = self._add(form, (one, *args), kwargs, choice, name, over=reference)
        return Steps(self, name, form.result_kind, None, whole._index)

    def _items(self, items: Any, form: StepForm) -> list[Any]:
        if isinstance(items, Step | Steps | StepEnd):
            raise ConfigError(items.remedy())
        if isinstance(items, str | bytes) or not isinstance(items, Iterable):
            raise ConfigError(
                f"wf.map({form.step_name}, {items!r:.100}) has no list to map over: give a list, "
                "or the result of a step that is one"
            )
        given = list(items)
        self._check_room(len(given))
        return given

    def _item_kind(self, reference: Reference) -> Any:
        try:
            return item_kind(reference.value)
        except NoMember as why:
            raise ConfigError(f"wf.map cannot map over {reference.text}: {why}") from None

    def _add(
        self,
        form: StepForm,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        choice: StepChoice,
        name: str,
        over: Reference | None = None,
    ) -> Step[Any]:
        self._check_room(1)
        try:
            draft = self._draft(form, args, kwargs, choice, name, over)
        except PayloadError as error:
            raise PayloadError(
                f"step {name!r}: {error}", path=error.path, problem=error.problem
            ) from error
        step: Step[Any] = Step(self, len(self._drafts), name, form.result_kind)
        self._names.add(name)
        self._drafts.append(draft)
        self._steps.append(step)
        return step

    def _draft(
        self,
        form: StepForm,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        choice: StepChoice,
        name: str,
        over: Reference | None,
    ) -> _Draft:
        fills: list[Fill] = []
        plain = [take_out(value, (place,), fills) for place, value in enumerate(args)]
        named = {key: take_out(value, (key,), fills) for key, value in kwargs.items()}
        if fills and form.signature is not None:
            check_arguments(form.signature, args, kwargs, DEFAULT_LIMIT)
        waits = StepWaits(name, self._drafts)
        for _, reference in fills:
            self._check_own(reference.owner, reference.text)
            waits.take(reference)
        for dependency in choice.after:
            self._wait(waits, dependency)
        waits.settle()
        task = form.submission(plain, named, partial=bool(fills))
        settings = None
        if over is not None:
            settings = self._map_settings(form, task, name)
            task = task._replace(concurrency_key=None)
            fills = [Fill((0,), over), *fills[1:]]
        elif task.concurrency_key is None:
            task = task._replace(concurrency_key=_key(form, args, kwargs, name))
        hidden = form.hidden if over is None else "map"
        return _Draft(name, task, waits, fills, choice.optional, hidden, settings)

    def _map_settings(self, form: StepForm, task: Submission, name: str) -> dict[str, Any]:
        """What the steps of a map will need that the step which adds them does not know."""
        return {
            "name": name,
            "hidden": form.hidden,
            "priority": task.priority,
            "tags": task.tags,
            "max_retries": task.max_retries,
            "good_for_us": task.good_for_us,
            "good_until": task.good_until,
            "key": task.concurrency_key,
            "most": self.max_steps,
        }

    def _wait(self, waits: StepWaits, dependency: object) -> None:
        end = dependency
        if isinstance(dependency, Step | Steps):
            end = dependency.succeeded
        elif reference_of(dependency) is not None:
            reference = cast("Placeholder", dependency)._holdfast_reference
            if reference.needed is None:
                raise ConfigError(
                    f"after= takes steps, not their values: write {reference.text.split('.')[0]}, "
                    f"not {reference.text}"
                )
            self._check_own(reference.owner, reference.text)
            waits.take(reference)
            return
        if not isinstance(end, StepEnd):
            raise ConfigError(
                f"after={dependency!r:.100} is not usable: give steps, or an end of one, such as "
                "raw.ended",
                option="after",
            )
        self._check_own(end.owner, end.text)
        waits.wait(end)

    def _form(self, task: object, verb: str) -> StepForm:
        if not isinstance(task, Stepable):
            raise ConfigError(
                f"wf.{verb}({task!r:.100}, …) is not usable: give a task, that is a function "
                "under @app.task, or a workflow"
            )
        form = task.__step_form__()
        if self._home is None:
            self._home = form.home
        elif self._home is not form.home:
            raise ConfigError(
                f"task {form.task_name!r} belongs to another app than the steps before it: a "
                "workflow is kept in one database"
            )
        return form

    def _check_own(self, owner: object, text: str) -> None:
        if owner is not self:
            raise ConfigError(
                f"{text} belongs to another workflow: only steps of {self.name!r} itself can be "
                "named here; pass the value as an argument"
            )

    def _check_room(self, more: int) -> None:
        if len(self._drafts) + more > self.max_steps:
            raise ConfigError(
                f"the {self._noun} {self.name!r} has more than {self.max_steps:,} steps: let a "
                "step add steps, make sub-workflows, or raise max_steps",
                option="max_steps",
            )

    def _free_name(self, asked: str | None, usual: str) -> str:
        if asked is not None:
            if asked in self._names:
                raise ConfigError(
                    f"the {self._noun} {self.name!r} has a step {asked!r} already: give another "
                    "name",
                    option="name",
                )
            self._names.add(asked)
            return asked
        while True:
            count = self._uses[usual] = self._uses.get(usual, 0) + 1
            name = usual if count == 1 else f"{usual}-{count}"
            if name not in self._names:
                self._names.add(name)
                return name


class _Optioned(StepMaker):
    """What `wf.options(…)` returns."""

    def __init__(self, builder: StepBuilder, choice: StepChoice) -> None:
        self._builder = builder
        self._choice = choice

    def _step(
        self, task: Stepable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Step[Any]:
        return self._builder._step(task, args, kwargs, self._choice)

    def _map(
        self,
        task: Stepable[..., Any],
        items: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Steps[Any]:
        return self._builder._map(task, items, args, kwargs, self._choice)


def _key(form: StepForm, args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> str | None:
    try:
        return form.key_of(args, kwargs)
    except NotYetKnown as error:
        raise ConfigError(
            f"the concurrency key of step {name!r} is made of a value that is not known yet "
            f"({error.args[0].split(' is known')[0]}): give it by "
            "task.options(concurrency_key=…)",
            option="concurrency_key",
        ) from None
