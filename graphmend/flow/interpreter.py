"""Abstract interpretation of one function on its control-flow graph.

The interpreter follows every path that tracing can take, with an environment of values per block, until nothing
changes. Calls go through the program, which knows the other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graphmend.flow.cfg import Block, Case, Catch, Enter, Graph, Item, Iterate, Test, build
from graphmend.flow.environment import Environment, forget, merge, path_of
from graphmend.flow.operators import arithmetic, compared
from graphmend.flow.uses import is_choice, is_cut
from graphmend.flow.values import (
    ABSENT,
    DRAWN,
    MASK_GUESS,
    MISSING,
    NONE,
    NOTHING,
    SCALAR,
    SIZE,
    STATIC,
    TENSOR_GUESS,
    UNKNOWN,
    ClassRef,
    ExternalName,
    Kind,
    ObjectMethod,
    Value,
    constant,
    container,
    dictionary,
    element,
    field_of,
    held,
    join,
    join_all,
    keyed,
    sequence,
    target,
    with_field,
)
from graphmend.flow.wording import is_called_a_configuration, is_called_a_mask
from graphmend.model.index import External
from graphmend.model.module import Class, Code, Function
from graphmend.model.tree import walk

if TYPE_CHECKING:
    from graphmend.flow.program import Program

_ROUNDS = 40
_INDEXED = Kind.TENSOR | Kind.CONTAINER | Kind.SIZE | Kind.NONE
_NAMED_TUPLE = "typing.NamedTuple"
_ADDING = frozenset({"append", "add", "appendleft", "insert", "setdefault"})
_GROWING = _ADDING | {"extend", "update"}


@dataclass
class Facts:
    """What the last pass over a function found: a value for every expression that tracing can reach."""

    function: Function
    graph: Graph
    values: dict[int, Value] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    """Identities of the statements that can run while tracing."""
    kept: list[ast.AST] = field(default_factory=list)
    """Nodes made on the way, kept alive because ``values`` goes by identity."""
    absent: frozenset[int] = frozenset()
    """Attributes and names that tracing finds to be ``None`` or off, by the identity of their nodes."""
    is_module: Callable[[ClassRef], bool] = lambda _: False
    """Whether the instances of a class are ``torch.nn.Module`` objects."""

    def value(self, node: ast.AST) -> Value:
        """The value of an expression; ``NOTHING`` if tracing does not reach it."""
        return self.values.get(id(node), NOTHING)


class Interpreter:
    """Runs one function. ``parameters`` holds the values that the parameters may have."""

    def __init__(self, program: Program, function: Function, parameters: Environment, facts: Facts | None) -> None:
        self.program = program
        self.function = function
        self.parameters = parameters
        self.facts = facts
        self.dotted: set[str] = set()
        """Names of whose attributes the environments may hold refinements."""
        self.results: Value = NOTHING
        self.yields: Value = NOTHING
        self.imports: dict[str, Value] = {}

    # ---------------------------------------------------------------- control flow

    def run(self, graph: Graph) -> Value:
        """The join of everything the function may return."""
        states: list[Environment | None] = [None] * len(graph.blocks)
        states[graph.entry.number] = {name: self.kept(name, value) for name, value in self.parameters.items()}
        pending = {graph.entry.number}
        rounds = [0] * len(graph.blocks)
        record = self.facts is not None
        while pending:
            number = min(pending)
            pending.discard(number)
            rounds[number] += 1
            if rounds[number] > 1:
                record = False  # what was recorded holds for the first round only
            if rounds[number] > _ROUNDS:
                continue
            block = graph.blocks[number]
            before = states[number]
            assert before is not None
            for successor, environment in self.flow(block, dict(before), record):
                known = states[successor.number]
                merged = environment if known is None else merge(known, environment)
                if known is None or merged is not known:
                    states[successor.number] = merged
                    pending.add(successor.number)
        if self.facts is not None and not record:
            self.facts.values.clear()
            self.facts.reached.clear()
            for block in graph.blocks:
                state = states[block.number]
                if state is not None:
                    list(self.flow(block, dict(state), record=True))
        if self.yields.kinds:
            return container(self.yields)
        end = states[graph.exit.number]
        return join(self.results, NONE) if end is not None and self.falls_through(graph, states) else self.results

    @staticmethod
    def falls_through(graph: Graph, states: Sequence[Environment | None]) -> bool:
        """Whether the function may end without a return statement."""
        for block in graph.blocks:
            if states[block.number] is not None and any(edge.target is graph.exit for edge in block.edges):
                last = block.items[-1] if block.items else None
                if not isinstance(last, (ast.Return, ast.Raise)):
                    return True
        return False

    def flow(self, block: Block, env: Environment, record: bool = False) -> Iterator[tuple[Block, Environment]]:
        """Run one block; yields each block that may come next with the environment it is entered with."""
        self.recording = record
        raised = dict(env) if block.exceptional else env
        truth: bool | None = None
        for item in block.items:
            if isinstance(item, Test):
                self.reach(item.statement)
                value = self.eval(item.expression, env)
                self.asked(value)
                if isinstance(item.expression, ast.Constant):
                    truth = bool(item.expression.value)
                else:
                    truth = self.decided(value)
            else:
                self.execute(item, env)
                if block.exceptional:
                    raised = merge(raised, env)
        for handler in block.exceptional:
            yield handler, dict(raised)
        test = block.test
        for edge in block.edges:
            if edge.sense is None or test is None:
                yield edge.target, dict(env)
            elif truth is None or truth is edge.sense:
                narrowed = dict(env)
                self.narrow(test, edge.sense, narrowed)
                yield edge.target, narrowed

    def asked(self, value: Value) -> Value:
        """Note that the function asks for the truth of a value."""
        if value.depends_on_data:
            self.program.tests_data.add(self.function)
        return value

    @staticmethod
    def decided(value: Value) -> bool | None:
        """The outcome of a condition if tracing decides it (``is_compiling()``), else ``None``."""
        return bool(value.constant) if value.traced else None

    def execute(self, item: Item, env: Environment) -> None:
        """Run one item of a block."""
        if isinstance(item, ast.stmt):
            self.reach(item)
        match item:
            case ast.Expr(value=value):
                self.eval(value, env)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                self._execute_assignment(item, env)
            case ast.Return(value=value):
                self.results = join(self.results, self.eval(value, env) if value is not None else NONE)
            case Iterate() | Enter() | Catch() | Case():
                self._execute_header(item, env)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
                self._execute_definition(item, env)
            case ast.Delete(targets=targets):
                for deleted in targets:
                    if isinstance(deleted, ast.Name):
                        env.pop(deleted.id, None)
            case ast.Raise(exc=exc, cause=cause):
                for part in (exc, cause):
                    if part is not None:
                        self.eval(part, env)

    def reach(self, statement: ast.stmt) -> None:
        """Note that tracing gets to a statement."""
        if self.recording and self.facts is not None:
            self.facts.reached.add(id(statement))

    def _execute_assignment(self, item: ast.Assign | ast.AugAssign | ast.AnnAssign, env: Environment) -> None:
        match item:
            case ast.Assign(targets=targets, value=value):
                result = self.eval(value, env)
                for assigned in targets:
                    self.assign(assigned, result, env)
            case ast.AugAssign(target=assigned, op=op, value=value):
                read = _load(assigned)
                if self.facts is not None:
                    self.facts.kept.append(read)
                left, right = self.eval(read, env), self.eval(value, env)
                self.compute(op, left, right)
                self.assign(assigned, arithmetic(op, left, right), env)
            case ast.AnnAssign(target=assigned, annotation=annotation, value=ast.expr() as value):
                result = self.eval(value, env)
                if result.kinds & Kind.UNKNOWN:
                    declared = self.program.annotations.value(annotation, self.function.module)
                    result = declared if declared.kinds != Kind.UNKNOWN else result
                self.assign(assigned, result, env)

    def _execute_header(self, item: Iterate | Enter | Catch | Case, env: Environment) -> None:
        match item:
            case Iterate(statement=loop):
                self.reach(loop)
                self.assign(loop.target, element(self.eval_again(loop.iter, env)), env)
            case Enter(item=entered, statement=statement):
                self.reach(statement)
                manager = self.eval(entered.context_expr, env)
                given = UNKNOWN
                for cls in manager.classes if manager.may(Kind.OBJECT) else ():
                    if isinstance(cls, ExternalName):
                        self.program.note(self.function, ObjectMethod(cls.name, "__enter__", manager))
                        given = manager  # what most classes of libraries give is the manager itself
                if entered.optional_vars is not None:
                    self.assign(entered.optional_vars, given, env)
            case Catch(handler=handler):
                if handler.name:
                    env[handler.name] = STATIC
            case Case(case=case, statement=statement):
                self.reach(statement)
                self.bind_pattern(case.pattern, self.asked(self.eval_again(statement.subject, env)), env)

    def _execute_definition(
        self,
        item: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom,
        env: Environment,
    ) -> None:
        if isinstance(item, (ast.Import, ast.ImportFrom)):
            for name, binding in self.function.module.import_bindings(item).items():
                env[name] = self.program.bindings.named(binding.target)
            return
        if isinstance(item, ast.ClassDef):
            cls = self.function.classes.get(id(item))
            if cls is not None:
                env[item.name] = self.program.bindings.made_class(cls, env, self)
                return
        nested = self.function.nested.get(id(item))
        if nested is None:
            if not isinstance(self.function, Code):  # what a file or class defines is found by its name
                env[item.name] = UNKNOWN
            return
        self.program.bindings.close(nested, env)
        env[item.name] = self.program.bindings.decorated(nested, self, env)

    def eval_again(self, node: ast.expr, env: Environment) -> Value:
        """The value of an expression whose effects were accounted for before (a loop's iterable)."""
        return self.eval(node, dict(env))

    def eval_unseen(self, node: ast.expr, env: Environment) -> Value:
        """The value of an expression that tracing may not get to, of which nothing is recorded."""
        recording, self.recording = self.recording, False
        value = self.eval(node, dict(env))
        self.recording = recording
        return value

    def bind_pattern(self, pattern: ast.pattern, subject: Value, env: Environment) -> None:
        """Bind the names of a ``match`` pattern."""
        for node in walk(pattern):
            if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                env[node.name] = subject if node is pattern else UNKNOWN
            elif isinstance(node, ast.MatchMapping) and node.rest:
                env[node.rest] = UNKNOWN

    # ---------------------------------------------------------------- assignment and narrowing

    def assign(self, node: ast.expr, value: Value, env: Environment) -> None:
        """Bind the target of an assignment."""
        match node:
            case ast.Name(id=name):
                if name in self.dotted:
                    forget(name, env)
                value = env[name] = self.kept(name, value)
                if self.recording and self.facts is not None:
                    self.facts.values[id(node)] = value
            case ast.Attribute(value=owner, attr=attr):
                if attr in self.program.watched.writes:
                    self.watch(node)
                holder = self.eval(owner, env)
                self.program.heap.write(holder, attr, value)
                key = path_of(node)
                if key:
                    forget(key, env)
                    self.dotted.add(key.partition(".")[0])
                    env[key] = value if value.fields is None else replace(value, fields=None)
            case ast.Subscript(value=owner, slice=index):
                holder = self.eval(owner, env)
                place = self.index(index, env)
                key = path_of(owner)
                if holder.may(Kind.CONTAINER) and key and key in env:
                    env[key] = with_field(holder, place.constant, value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self.unpack(elements, value, env)
            case ast.Starred(value=inner):
                self.assign(inner, container(element(value)), env)

    def kept(self, name: str, value: Value) -> Value:
        """What is known of a value under a name: of a dict that something else may change, not what each key holds."""
        if value.fields is None or name not in self.program.uses.escaping(self.function):
            return value
        return replace(value, fields=None)

    def unpack(self, elements: Sequence[ast.expr], value: Value, env: Environment) -> None:
        """Bind the names of a tuple target."""
        starred = any(isinstance(each, ast.Starred) for each in elements)
        items = value.items if value.items is not None else self.fields(value)
        if items is None or starred or len(items) != len(elements):
            items = (element(value),) * len(elements)
        for each, item in zip(elements, items):
            self.assign(each, item, env)

    def fields(self, value: Value) -> tuple[Value, ...] | None:
        """What unpacking a named tuple gives; ``None`` for anything else."""
        cls = next(iter(value.classes), None) if value.only(Kind.OBJECT) and len(value.classes) == 1 else None
        if not isinstance(cls, Class) or External(_NAMED_TUPLE) not in self.program.index.mro(cls):
            return None
        return tuple(self.program.heap.read(value, name, cls.node.lineno, self) for name in cls.annotations)

    def narrow(self, test: ast.expr, sense: bool, env: Environment) -> None:
        """Refine the environment by the outcome of a condition."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.narrow(operand, not sense, env)
            case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is sense:
                for value in values:
                    self.narrow(value, sense, env)
            case ast.BoolOp(op=op, values=values):
                self.narrow_rest(values, isinstance(op, ast.And), sense, env)
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                self.refine(left, env, keep=Kind.NONE, positive=isinstance(op, ast.Is) is sense)
            case ast.Call(func=func, args=[subject, types]) if self.names(func, env, "builtins.isinstance"):
                self.narrow_instance(subject, types, sense, env)
            case ast.Call(func=func, args=[subject]) if self.names(func, env, "torch.is_tensor"):
                self.refine(subject, env, keep=Kind.TENSOR, positive=sense)
            case ast.Name() | ast.Attribute() if sense:
                self.refine(test, env, keep=Kind.NONE, positive=False)
            case ast.NamedExpr(target=assigned):
                self.narrow(assigned, sense, env)

    def narrow_rest(self, values: Sequence[ast.expr], conjunction: bool, sense: bool, env: Environment) -> None:
        """Refine by a conjunction that is false, or a disjunction that is true.

        If tracing decides all operands but one (``mask is not None and is_compiling()``), it is that one.
        """
        rest: list[ast.expr] = []
        for value in values:
            calls = any(isinstance(node, ast.Call) for node in walk(value))
            if not calls or self.decided(self.eval_unseen(value, env)) is not conjunction:
                rest.append(value)
        if len(rest) == 1 and len(values) > 1:
            self.narrow(rest[0], sense, env)
            key, is_none = _none_test(rest[0])
            if key and is_none is sense:
                env[key] = ABSENT

    def names(self, node: ast.expr, env: Environment, dotted: str) -> bool:
        """Whether an expression is the external ``dotted`` and nothing else."""
        last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if last != dotted.rpartition(".")[2]:
            return False
        return self.eval(node, dict(env)).targets == self.program.bindings.named(dotted).targets

    def refine(self, node: ast.expr, env: Environment, keep: int, positive: bool) -> None:
        """Note that a name or attribute certainly has, or certainly has not, the kinds ``keep``."""
        key = path_of(node.target if isinstance(node, ast.NamedExpr) else node)
        if not key:
            return
        self.dotted.add(key.partition(".")[0])
        value = env[key] if key in env else self.eval(node, dict(env))
        if positive:
            if keep == Kind.NONE:
                env[key] = NONE
            elif keep == Kind.TENSOR:
                env[key] = replace(value, kinds=Kind.TENSOR, inferred=False, items=None, element=None, constant=MISSING)
        else:
            env[key] = value.without(keep)
            if env[key].kinds in (Kind.NOTHING, Kind.UNKNOWN):
                # No call that is seen gives anything known: what the code does with it tells what others may give.
                env[key] = TENSOR_GUESS if self.is_used_as_tensor(key) else UNKNOWN

    def is_used_as_tensor(self, name: str) -> bool:
        """Whether a name is that of a parameter which is used as a tensor."""
        if all(parameter.arg != name or parameter.annotation is not None for parameter in self.function.parameters):
            return False
        return name in self.program.uses.as_tensor(self.function)

    def narrow_instance(self, subject: ast.expr, types: ast.expr, sense: bool, env: Environment) -> None:
        """Refine the environment by the outcome of ``isinstance(subject, types)``."""
        key = path_of(subject)
        if not key:
            return
        self.dotted.add(key.partition(".")[0])
        declared = self.program.annotations.instance_test(types, self, env)
        if declared.kinds & Kind.UNKNOWN:
            return
        value = env[key] if key in env else self.eval(subject, dict(env))
        if sense:
            kept = value.kinds & declared.kinds
            if value.kinds & Kind.UNKNOWN or not kept:
                env[key] = replace(declared, inferred=False)
            elif declared.kinds == Kind.TENSOR:
                env[key] = replace(value, kinds=Kind.TENSOR, inferred=False, items=None, element=None)
            elif declared.kinds == Kind.OBJECT:
                env[key] = replace(declared, inferred=False)
            else:
                env[key] = replace(value, kinds=kept)
        elif declared.kinds in (Kind.TENSOR, Kind.NONE, Kind.CONTAINER):
            rest = value.without(declared.kinds)
            env[key] = rest if rest.kinds else UNKNOWN

    # ---------------------------------------------------------------- expressions

    def eval(self, node: ast.expr, env: Environment) -> Value:
        """The value of an expression in an environment, which a walrus may change."""
        handler = _HANDLERS.get(type(node))
        value = handler(self, node, env) if handler else UNKNOWN
        if self.recording and self.facts is not None:
            known = self.facts.values.get(id(node))
            self.facts.values[id(node)] = value if known is None else join(known, value)
        return value

    recording = False

    def _constant(self, node: ast.Constant, env: Environment) -> Value:
        value = node.value
        return constant(value) if isinstance(value, (str, bytes, int, float, bool, type(None))) else STATIC

    def _name(self, node: ast.Name, env: Environment) -> Value:
        if self.facts is not None and id(node) in self.facts.absent:
            return ABSENT
        value = env.get(node.id)
        return value if value is not None else self.program.bindings.free_name(self.function, node.id)

    def _attribute(self, node: ast.Attribute, env: Environment) -> Value:
        if node.attr in self.program.watched.reads:
            self.watch(node)
        if self.dotted and (self.facts is None or id(node) not in self.facts.absent):
            key = path_of(node)
            if key and key in env:
                self.eval(node.value, env)
                return env[key]
        holder = self.eval(node.value, env)
        if self.facts is not None and id(node) in self.facts.absent:
            return ABSENT
        value = self.program.heap.read(holder, node.attr, node.lineno, self)
        if value.kinds & Kind.UNKNOWN and not holder.may(Kind.TENSOR) and is_called_a_configuration(node.value):
            return join(STATIC, value.without(Kind.UNKNOWN))
        return value

    def watch(self, node: ast.Attribute) -> None:
        """Note the use of an attribute that rules look for."""
        self.program.attributes.setdefault(self.function, set()).add(node.attr)

    def _subscript(self, node: ast.Subscript, env: Environment) -> Value:
        return self.item(self.eval(node.value, env), self.index(node.slice, env), node)

    def index(self, node: ast.expr, env: Environment) -> Value:
        """The value of an index; tensors and numbers that were read are noted."""
        value = self.eval(node, env)
        parts = [(node, value)]
        if isinstance(node, ast.Tuple) and value.items is not None:
            parts = list(zip(node.elts, value.items))
        if any(_may_be_read(part, each) for part, each in parts):
            self.program.tests_data.add(self.function)
        return value

    def item(self, holder: Value, index: Value, node: ast.Subscript) -> Value:
        """The value of ``holder[index]``."""
        results: list[Value] = []
        if holder.may(Kind.TENSOR):
            found = Value(Kind.TENSOR, inferred=holder.inferred, dtype=holder.dtype)
            if is_of_array(node) and holder.only(_INDEXED):
                return found
            results.append(found)
        elif holder.kinds & ~Kind.NONE == Kind.UNKNOWN and is_of_array(node):
            return TENSOR_GUESS  # nothing else takes slices among several indices
        if holder.may(Kind.CONTAINER) or holder.element is not None:
            position = index.constant
            if isinstance(node.slice, ast.Slice):
                results.append(replace(holder, items=None, constant=MISSING))
            elif isinstance(position, int) and holder.items and -len(holder.items) <= position < len(holder.items):
                results.append(holder.items[position])
            else:
                field = field_of(holder, position)
                results.append(held(replace(holder, kinds=Kind.CONTAINER)) if field is None else field)
        if holder.may(Kind.SIZE) and not holder.may(Kind.CONTAINER):
            results.append(SIZE)
        if holder.may(Kind.STATIC):
            results.append(STATIC)
        for kind in (Kind.SCALAR, Kind.NUMPY):
            if holder.may(kind):
                results.append(Value(kind, inferred=holder.inferred))
        if holder.may(Kind.OBJECT) and holder.element is None:
            results.append(self.program.calls.call_method(holder, "__getitem__", [index], node, self))
        return join_all(results) if results else UNKNOWN

    def _slice(self, node: ast.Slice, env: Environment) -> Value:
        parts = [self.eval(part, env) for part in (node.lower, node.upper, node.step) if part is not None]
        data = any(part.depends_on_data for part in parts)
        return SCALAR if data else STATIC

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, env: Environment) -> Value:
        values = [self.eval(element, env) for element in node.elts]
        if any(isinstance(element, ast.Starred) for element in node.elts) or isinstance(node, ast.Set):
            return container(join_all(values))
        return sequence(values)

    def _starred(self, node: ast.Starred, env: Environment) -> Value:
        return element(self.eval(node.value, env))

    def _dictionary(self, node: ast.Dict, env: Environment) -> Value:
        values = [self.eval(value, env) for value in node.values]
        for key in node.keys:
            if key is not None:
                self.eval(key, env)
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        return keyed(dict(zip(keys, values))) if len(keys) == len(values) else dictionary(join_all(values))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Environment
    ) -> Value:
        inner = dict(env)
        for generator in node.generators:
            self.assign(generator.target, element(self.eval(generator.iter, inner)), inner)
            for condition in generator.ifs:
                self.asked(self.eval(condition, inner))
                self.narrow(condition, True, inner)
        if isinstance(node, ast.DictComp):
            self.eval(node.key, inner)
            return dictionary(self.eval(node.value, inner))
        return container(self.eval(node.elt, inner))

    def _call(self, node: ast.Call, env: Environment) -> Value:
        callee = self.eval(node.func, env)
        given = node.args
        if self.calls_decorated(node):
            # What all that is decorated alike is called with, mixed up, says nothing of one of them.
            given = [each for each in given if not isinstance(each, ast.Starred)]
        arguments = [self.eval(argument, env) for argument in given]
        keywords = [(keyword.arg, self.eval(keyword.value, env)) for keyword in node.keywords]
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            keywords.append((None, UNKNOWN))
        result = self.program.calls.call(callee, arguments, keywords, node, self)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING and arguments:
            self.grow(node.func, arguments, env)
        return result

    def calls_decorated(self, node: ast.Call) -> bool:
        """Whether a call in what a decorator returns is one of the function that was decorated."""
        decorator = self.function.parent
        given = decorator.first_argument if decorator is not None else ""
        return isinstance(node.func, ast.Name) and node.func.id == given

    def grow(self, method: ast.Attribute, arguments: Sequence[Value], env: Environment) -> None:
        """Remember what ``list.append`` and the like put into a container."""
        key = path_of(method.value)
        holder = env[key] if key and key in env else None
        added = arguments[-1] if method.attr in _ADDING else element(arguments[-1])
        if holder is not None and holder.may(Kind.CONTAINER):
            env[key] = with_field(holder, MISSING, added)
        elif isinstance(method.value, ast.Attribute):
            stored = self.eval(method.value, dict(env))
            if stored.only(Kind.CONTAINER):
                owner = self.eval(method.value.value, dict(env))
                self.program.heap.write(owner, method.value.attr, container(added))

    def _if_expression(self, node: ast.IfExp, env: Environment) -> Value:
        tested = self.asked(self.eval(node.test, env))
        truth = self.decided(tested)
        outcomes: list[Value] = []
        for sense, branch in ((True, node.body), (False, node.orelse)):
            if truth is None or truth is sense:
                narrowed = dict(env)
                self.narrow(node.test, sense, narrowed)
                outcomes.append(self.eval(branch, narrowed))
        return join_all(outcomes)

    def _boolean(self, node: ast.BoolOp, env: Environment) -> Value:
        conjunction = isinstance(node.op, ast.And)
        results: list[Value] = []
        narrowed = dict(env)
        for position, operand in enumerate(node.values):
            value = self.asked(self.eval(operand, narrowed))
            truth = self.decided(value)
            if truth is not None and truth is not conjunction:
                # Tracing decides the whole: `is_compiling() or …`, `not is_compiling() and …`.
                return value
            if truth is None:
                last = position == len(node.values) - 1
                # A NumPy number whose truth was asked ended the graph there: what comes of it is known from then on.
                kept = value if last or not value.only(Kind.NUMPY) else STATIC
                results.append(kept if last or conjunction else kept.without(Kind.NONE))
            self.narrow(operand, conjunction, narrowed)
        if not results:
            return replace(STATIC, constant=conjunction, traced=True)
        return replace(join_all(results), constant=MISSING, traced=False)

    def _unary(self, node: ast.UnaryOp, env: Environment) -> Value:
        value = self.eval(node.operand, env)
        if isinstance(node.op, ast.Not):
            if self.asked(value).traced:
                return replace(value, constant=not value.constant)
            if value.depends_on_data:
                return replace(SCALAR, inferred=value.inferred)
            return STATIC if not value.may(Kind.UNKNOWN) else UNKNOWN
        if value.may(Kind.DRAWN):
            self.asked(value)
        if isinstance(node.op, ast.USub) and isinstance(value.constant, (int, float)):
            return constant(-value.constant)
        if value.may(Kind.TENSOR):
            return replace(value, leaf=False, low=None, high=None)
        return replace(value, constant=MISSING, low=None, high=None)

    def _binary(self, node: ast.BinOp, env: Environment) -> Value:
        return self.compute(node.op, self.eval(node.left, env), self.eval(node.right, env))

    def compute(self, op: ast.operator, left: Value, right: Value) -> Value:
        """The value of a binary operation; numbers that are drawn are noted."""
        result = arithmetic(op, left, right)
        if (left.kinds | right.kinds) & Kind.DRAWN:
            self.asked(DRAWN)
            if result.only(Kind.DRAWN):
                return STATIC  # tracing gave up on the function, and its numbers are plain ones
        return result

    def _compare(self, node: ast.Compare, env: Environment) -> Value:
        left = self.eval(node.left, env)
        results: list[Value] = []
        for op, comparator in zip(node.ops, node.comparators):
            right = self.eval(comparator, env)
            results.append(compared(op, left, right))
            if len(node.ops) > 1 or isinstance(op, (ast.In, ast.NotIn)):
                self.asked(results[-1])
            left = right
        if len(results) == 1:
            indexed = (
                self.program.uses.masks(self.function).get(id(node), ()) if results[0].kinds == Kind.UNKNOWN else ()
            )
            if indexed and not is_choice(indexed):
                holders = (self.eval_unseen(holder, env) for holder in indexed)
                if all(not holder.kinds or holder.may(Kind.TENSOR | Kind.UNKNOWN) for holder in holders):
                    return MASK_GUESS
            return results[0]
        joined = join_all(results)
        return joined if not joined.may(Kind.TENSOR) else replace(joined, single=all(r.single for r in results))

    def _formatted(self, node: ast.JoinedStr, env: Environment) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.eval(part, env)
        return STATIC

    def _formatted_value(self, node: ast.FormattedValue, env: Environment) -> Value:
        self.eval(node.value, env)
        if node.format_spec is not None:
            self.eval(node.format_spec, env)
        return STATIC

    def _lambda(self, node: ast.Lambda, env: Environment) -> Value:
        nested = self.function.nested.get(id(node))
        if nested is None:
            return UNKNOWN
        self.program.bindings.close(nested, env)
        return target(nested)

    def _walrus(self, node: ast.NamedExpr, env: Environment) -> Value:
        value = self.eval(node.value, env)
        self.assign(node.target, value, env)
        return value

    def _await(self, node: ast.Await, env: Environment) -> Value:
        return self.eval(node.value, env)

    def _yield(self, node: ast.Yield | ast.YieldFrom, env: Environment) -> Value:
        value = self.eval(node.value, env) if node.value is not None else NONE
        if isinstance(node, ast.YieldFrom):
            value = element(value)
        self.yields = join(self.yields, value)
        return UNKNOWN


def is_of_array(node: ast.Subscript) -> bool:
    """Whether an index is one that, among what can be indexed, only arrays take."""
    return isinstance(node.slice, ast.Tuple) and any(map(is_cut, node.slice.elts))


def _may_be_read(node: ast.expr, index: Value) -> bool:
    """Whether an index, or a bound of a slice, may be a mask or a number that is read."""
    if not index.depends_on_data:
        return False
    return not index.is_tensor or index.dtype == "bool" or index.single or not index.dtype and is_called_a_mask(node)


def _none_test(test: ast.expr) -> tuple[str, bool]:
    """The path that is compared with ``None``, and whether for being it; an empty path for another test."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            return path_of(left), isinstance(op, ast.Is)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            path, is_none = _none_test(operand)
            return path, not is_none
    return "", False


def _load(node: ast.expr) -> ast.expr:
    """The expression that reads what an augmented assignment writes."""
    match node:
        case ast.Name(id=name):
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        case ast.Attribute(value=value, attr=attr):
            return ast.copy_location(ast.Attribute(value, attr, ast.Load()), node)
        case ast.Subscript(value=value, slice=index):
            return ast.copy_location(ast.Subscript(value, index, ast.Load()), node)
    return node


_HANDLERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: Interpreter._constant,
    ast.Name: Interpreter._name,
    ast.Attribute: Interpreter._attribute,
    ast.Subscript: Interpreter._subscript,
    ast.Slice: Interpreter._slice,
    ast.Tuple: Interpreter._sequence,
    ast.List: Interpreter._sequence,
    ast.Set: Interpreter._sequence,
    ast.Starred: Interpreter._starred,
    ast.Dict: Interpreter._dictionary,
    ast.ListComp: Interpreter._comprehension,
    ast.SetComp: Interpreter._comprehension,
    ast.GeneratorExp: Interpreter._comprehension,
    ast.DictComp: Interpreter._comprehension,
    ast.Call: Interpreter._call,
    ast.IfExp: Interpreter._if_expression,
    ast.BoolOp: Interpreter._boolean,
    ast.UnaryOp: Interpreter._unary,
    ast.BinOp: Interpreter._binary,
    ast.Compare: Interpreter._compare,
    ast.JoinedStr: Interpreter._formatted,
    ast.FormattedValue: Interpreter._formatted_value,
    ast.Lambda: Interpreter._lambda,
    ast.NamedExpr: Interpreter._walrus,
    ast.Await: Interpreter._await,
    ast.Yield: Interpreter._yield,
    ast.YieldFrom: Interpreter._yield,
}


def graph_of(function: Function) -> Graph:
    """The control-flow graph of a function."""
    return build(function.body)
