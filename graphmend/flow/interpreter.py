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
from graphmend.flow.values import (
    MISSING,
    NONE,
    NOTHING,
    SCALAR,
    SIZE,
    STATIC,
    UNKNOWN,
    Kind,
    Value,
    constant,
    container,
    join,
    join_all,
    sequence,
    target,
)
from graphmend.model.module import Function

if TYPE_CHECKING:
    from graphmend.flow.program import Program

Environment = dict[str, Value]

DATA_TEST = "<test>"
"""Noted of a function that tests a value which may depend on tensor data."""

_ROUNDS = 40
_NUMERIC = Kind.SIZE | Kind.STATIC | Kind.SCALAR


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
        self.results: Value = NOTHING
        self.yields: Value = NOTHING
        self.imports: dict[str, Value] = {}

    # ---------------------------------------------------------------- control flow

    def run(self, graph: Graph) -> Value:
        """The join of everything the function may return."""
        states: list[Environment | None] = [None] * len(graph.blocks)
        states[graph.entry.number] = dict(self.parameters)
        pending = {graph.entry.number}
        rounds = [0] * len(graph.blocks)
        while pending:
            number = min(pending)
            pending.discard(number)
            rounds[number] += 1
            if rounds[number] > _ROUNDS:
                continue
            block = graph.blocks[number]
            before = states[number]
            assert before is not None
            for successor, environment in self.flow(block, dict(before)):
                known = states[successor.number]
                merged = environment if known is None else _merge(known, environment)
                if known is None or merged is not known:
                    states[successor.number] = merged
                    pending.add(successor.number)
        if self.facts is not None:
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
        self.recording = record
        raised = dict(env) if block.exceptional else env
        truth: bool | None = None
        for item in block.items:
            if isinstance(item, Test):
                if record and self.facts is not None:
                    self.facts.reached.add(id(item.statement))
                value = self.eval(item.expression, env)
                if value.depends_on_data:
                    self.program.note(self.function, DATA_TEST)
                truth = self.decided(value)
            else:
                self.execute(item, env)
                if block.exceptional:
                    raised = _merge(raised, env)
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

    @staticmethod
    def decided(value: Value) -> bool | None:
        """The outcome of a condition if tracing decides it (``is_compiling()``), else ``None``."""
        return bool(value.constant) if value.traced else None

    def execute(self, item: Item, env: Environment) -> None:
        if self.recording and self.facts is not None and isinstance(item, ast.stmt):
            self.facts.reached.add(id(item))
        match item:
            case ast.Expr(value=value):
                self.eval(value, env)
            case ast.Assign(targets=targets, value=value):
                result = self.eval(value, env)
                for assigned in targets:
                    self.assign(assigned, result, env)
            case ast.AugAssign(target=assigned, op=op, value=value):
                read = _load(assigned)
                if self.facts is not None:
                    self.facts.kept.append(read)
                left = self.eval(read, env)
                result = self.arithmetic(op, left, self.eval(value, env))
                self.assign(assigned, result, env)
            case ast.AnnAssign(target=assigned, annotation=annotation, value=value):
                if value is not None:
                    result = self.eval(value, env)
                    if result.kinds & Kind.UNKNOWN:
                        declared = self.program.annotation(annotation, self.function.module)
                        result = declared if declared.kinds != Kind.UNKNOWN else result
                    self.assign(assigned, result, env)
            case ast.Return(value=value):
                self.results = join(self.results, self.eval(value, env) if value is not None else NONE)
            case Iterate(statement=loop):
                if self.recording and self.facts is not None:
                    self.facts.reached.add(id(loop))
                self.assign(loop.target, self.program.element(self.eval_again(loop.iter, env), self), env)
            case Enter(item=entered):
                if self.recording and self.facts is not None:
                    self.facts.reached.add(id(item.statement))
                value = self.eval(entered.context_expr, env)
                if entered.optional_vars is not None:
                    self.assign(entered.optional_vars, self.program.entered(value, self, entered.context_expr), env)
            case Catch(handler=handler):
                if handler.name:
                    env[handler.name] = STATIC
            case Case(case=case, statement=statement):
                subject = self.eval_again(statement.subject, env)
                self.bind_pattern(case.pattern, subject, env)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                nested = self.function.nested.get(id(item))
                if nested is not None:
                    self.program.close(nested, env)
                    env[item.name] = self.program.decorated(nested, self)
            case ast.ClassDef():
                env[item.name] = UNKNOWN
            case ast.Import() | ast.ImportFrom():
                for name, binding in self.function.module.import_bindings(item).items():
                    env[name] = self.program.named(binding.target)
            case ast.Delete(targets=targets):
                for deleted in targets:
                    if isinstance(deleted, ast.Name):
                        env.pop(deleted.id, None)
            case ast.Raise(exc=exc, cause=cause):
                for part in (exc, cause):
                    if part is not None:
                        self.eval(part, env)

    def eval_again(self, node: ast.expr, env: Environment) -> Value:
        """The value of an expression whose effects were accounted for before (a loop's iterable)."""
        return self.eval(node, dict(env))

    def bind_pattern(self, pattern: ast.pattern, subject: Value, env: Environment) -> None:
        for node in ast.walk(pattern):
            if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                env[node.name] = subject if node is pattern else UNKNOWN
            elif isinstance(node, ast.MatchMapping) and node.rest:
                env[node.rest] = UNKNOWN

    # ---------------------------------------------------------------- assignment and narrowing

    def assign(self, node: ast.expr, value: Value, env: Environment) -> None:
        match node:
            case ast.Name(id=name):
                _forget(name, env)
                env[name] = value
                if self.recording and self.facts is not None:
                    self.facts.values[id(node)] = value
            case ast.Attribute(value=owner, attr=attr):
                holder = self.eval(owner, env)
                self.program.write_attribute(holder, attr, value)
                key = _path(node)
                if key:
                    _forget(key, env)
                    env[key] = value
            case ast.Subscript(value=owner, slice=index):
                holder = self.eval(owner, env)
                self.eval(index, env)
                key = _path(owner)
                if holder.may(Kind.CONTAINER) and key and key in env:
                    element = join(holder.element or NOTHING, value)
                    env[key] = replace(holder, items=None, element=element)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self.unpack(elements, value, env)
            case ast.Starred(value=inner):
                self.assign(inner, container(self.program.element(value, self)), env)

    def unpack(self, elements: Sequence[ast.expr], value: Value, env: Environment) -> None:
        starred = [i for i, element in enumerate(elements) if isinstance(element, ast.Starred)]
        items = value.items
        if items is not None and not starred and len(items) == len(elements):
            for element, item in zip(elements, items):
                self.assign(element, item, env)
            return
        each = self.program.element(value, self)
        for element in elements:
            self.assign(element, each, env)

    def narrow(self, test: ast.expr, sense: bool, env: Environment) -> None:
        """Refine the environment by the outcome of a condition."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.narrow(operand, not sense, env)
            case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is sense:
                for value in values:
                    self.narrow(value, sense, env)
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

    def names(self, node: ast.expr, env: Environment, dotted: str) -> bool:
        """Whether an expression is the external ``dotted`` and nothing else."""
        last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if last != dotted.rpartition(".")[2]:
            return False
        return self.eval(node, dict(env)).targets == self.program.named(dotted).targets

    def refine(self, node: ast.expr, env: Environment, keep: int, positive: bool) -> None:
        key = _path(node.target if isinstance(node, ast.NamedExpr) else node)
        if not key:
            return
        value = env[key] if key in env else self.eval(node, dict(env))
        if positive:
            if keep == Kind.NONE:
                env[key] = NONE
            elif keep == Kind.TENSOR:
                env[key] = replace(value, kinds=Kind.TENSOR, inferred=False, items=None, element=None, constant=MISSING)
        else:
            env[key] = value.without(keep)
            if env[key].kinds == Kind.NOTHING:
                env[key] = UNKNOWN

    def narrow_instance(self, subject: ast.expr, types: ast.expr, sense: bool, env: Environment) -> None:
        key = _path(subject)
        if not key:
            return
        declared = self.program.annotation_union(types, self, env)
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

    def constant(self, node: ast.Constant, env: Environment) -> Value:
        value = node.value
        return constant(value) if isinstance(value, (str, bytes, int, float, bool, type(None))) else STATIC

    def name(self, node: ast.Name, env: Environment) -> Value:
        value = env.get(node.id)
        return value if value is not None else self.program.free_name(self.function, node.id)

    def attribute(self, node: ast.Attribute, env: Environment) -> Value:
        key = _path(node)
        if key and key in env:
            self.eval(node.value, env)
            return env[key]
        return self.program.attribute(self.eval(node.value, env), node.attr, self)

    def subscript(self, node: ast.Subscript, env: Environment) -> Value:
        return self.program.subscript(self.eval(node.value, env), self.eval(node.slice, env), node, self)

    def slice(self, node: ast.Slice, env: Environment) -> Value:
        parts = [self.eval(part, env) for part in (node.lower, node.upper, node.step) if part is not None]
        data = any(part.depends_on_data for part in parts)
        return SCALAR if data else STATIC

    def sequence(self, node: ast.Tuple | ast.List | ast.Set, env: Environment) -> Value:
        values = [self.eval(element, env) for element in node.elts]
        if any(isinstance(element, ast.Starred) for element in node.elts) or isinstance(node, ast.Set):
            return container(join_all(values))
        return sequence(values)

    def starred(self, node: ast.Starred, env: Environment) -> Value:
        return self.program.element(self.eval(node.value, env), self)

    def dictionary(self, node: ast.Dict, env: Environment) -> Value:
        values = [self.eval(value, env) for value in node.values]
        for key in node.keys:
            if key is not None:
                self.eval(key, env)
        return container(join_all(values))

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Environment) -> Value:
        inner = dict(env)
        for generator in node.generators:
            self.assign(generator.target, self.program.element(self.eval(generator.iter, inner), self), inner)
            for condition in generator.ifs:
                self.eval(condition, inner)
                self.narrow(condition, True, inner)
        if isinstance(node, ast.DictComp):
            self.eval(node.key, inner)
            return container(self.eval(node.value, inner))
        return container(self.eval(node.elt, inner))

    def call(self, node: ast.Call, env: Environment) -> Value:
        callee = self.eval(node.func, env)
        arguments = [self.eval(argument, env) for argument in node.args]
        keywords = [(keyword.arg, self.eval(keyword.value, env)) for keyword in node.keywords]
        return self.program.call(callee, arguments, keywords, node, self)

    def if_expression(self, node: ast.IfExp, env: Environment) -> Value:
        tested = self.eval(node.test, env)
        if tested.depends_on_data:
            self.program.note(self.function, DATA_TEST)
        truth = self.decided(tested)
        outcomes: list[Value] = []
        for sense, branch in ((True, node.body), (False, node.orelse)):
            if truth is None or truth is sense:
                narrowed = dict(env)
                self.narrow(node.test, sense, narrowed)
                outcomes.append(self.eval(branch, narrowed))
        return join_all(outcomes)

    def boolean(self, node: ast.BoolOp, env: Environment) -> Value:
        conjunction = isinstance(node.op, ast.And)
        results: list[Value] = []
        narrowed = dict(env)
        for position, operand in enumerate(node.values):
            value = self.eval(operand, narrowed)
            truth = self.decided(value)
            if truth is not None and truth is not conjunction:
                # Tracing decides the whole: `is_compiling() or …`, `not is_compiling() and …`.
                return value
            if truth is None:
                last = position == len(node.values) - 1
                results.append(value if last or conjunction else value.without(Kind.NONE))
            self.narrow(operand, conjunction, narrowed)
        if not results:
            return replace(STATIC, constant=conjunction, traced=True)
        return replace(join_all(results), constant=MISSING, traced=False)

    def unary(self, node: ast.UnaryOp, env: Environment) -> Value:
        value = self.eval(node.operand, env)
        if isinstance(node.op, ast.Not):
            if value.traced:
                return replace(value, constant=not value.constant)
            return SCALAR if value.depends_on_data else STATIC if not value.may(Kind.UNKNOWN) else UNKNOWN
        if isinstance(node.op, ast.USub) and isinstance(value.constant, (int, float)):
            return constant(-value.constant)
        if value.may(Kind.TENSOR):
            return replace(value, leaf=False, low=None, high=None)
        return replace(value, constant=MISSING, low=None, high=None)

    def binary(self, node: ast.BinOp, env: Environment) -> Value:
        return self.arithmetic(node.op, self.eval(node.left, env), self.eval(node.right, env))

    def arithmetic(self, op: ast.operator, left: Value, right: Value) -> Value:
        kinds: int = Kind.NOTHING
        tensors = [value for value in (left, right) if value.may(Kind.TENSOR)]
        others = [value.kinds & ~(Kind.TENSOR | Kind.NONE) for value in (left, right)]
        if tensors:
            kinds |= Kind.TENSOR
        if isinstance(op, (ast.Add, ast.Mult)) and left.may(Kind.CONTAINER) and not tensors:
            if left.may(Kind.SIZE) or right.may(Kind.SIZE):
                return replace(container(SIZE), kinds=Kind.CONTAINER | Kind.SIZE)
            if isinstance(op, ast.Add) and left.items is not None and right.items is not None:
                return sequence([*left.items, *right.items])
            return container(join(left.element or NOTHING, right.element or NOTHING))
        if all(others):
            both = others[0] | others[1]
            for kind in (Kind.UNKNOWN, Kind.OBJECT, Kind.SCALAR, Kind.SIZE):
                if both & kind:
                    kinds |= Kind.UNKNOWN if kind is Kind.OBJECT else kind
                    break
            else:
                kinds |= Kind.STATIC
        if not kinds & Kind.TENSOR:
            return Value(kinds or Kind.UNKNOWN, inferred=bool(kinds & Kind.SCALAR) and (left.inferred or right.inferred))
        comparison = isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor))
        booleans = all(value.dtype == "bool" for value in tensors)
        scalars = all(value.single or not value.may(Kind.TENSOR) and value.only(_NUMERIC) for value in (left, right))
        floating = any(value.dtype == "float" for value in tensors) or isinstance(op, ast.Div)
        integral = all(value.dtype in ("int", "bool") or not value.may(Kind.TENSOR) for value in (left, right))
        return Value(
            kinds,
            inferred=all(value.inferred for value in tensors),
            dtype="bool" if comparison and booleans else "float" if floating else "int" if integral and len(tensors) == 2 else "",
            single=scalars,
        )

    def compare(self, node: ast.Compare, env: Environment) -> Value:
        left = self.eval(node.left, env)
        results: list[Value] = []
        for op, comparator in zip(node.ops, node.comparators):
            right = self.eval(comparator, env)
            results.append(compared(op, left, right))
            left = right
        if len(results) == 1:
            return results[0]
        joined = join_all(results)
        return joined if not joined.may(Kind.TENSOR) else replace(joined, single=all(r.single for r in results))

    def formatted(self, node: ast.JoinedStr, env: Environment) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.eval(part, env)
        return STATIC

    def formatted_value(self, node: ast.FormattedValue, env: Environment) -> Value:
        self.eval(node.value, env)
        if node.format_spec is not None:
            self.eval(node.format_spec, env)
        return STATIC

    def lambda_(self, node: ast.Lambda, env: Environment) -> Value:
        nested = self.function.nested.get(id(node))
        if nested is None:
            return UNKNOWN
        self.program.close(nested, env)
        return target(nested)

    def walrus(self, node: ast.NamedExpr, env: Environment) -> Value:
        value = self.eval(node.value, env)
        self.assign(node.target, value, env)
        return value

    def await_(self, node: ast.Await, env: Environment) -> Value:
        return self.eval(node.value, env)

    def yield_(self, node: ast.Yield | ast.YieldFrom, env: Environment) -> Value:
        value = self.eval(node.value, env) if node.value is not None else NONE
        if isinstance(node, ast.YieldFrom):
            value = self.program.element(value, self)
        self.yields = join(self.yields, value)
        return UNKNOWN


def compared(op: ast.cmpop, left: Value, right: Value) -> Value:
    """The value of one comparison."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        return STATIC
    if isinstance(op, (ast.In, ast.NotIn)):
        inside = right.element if right.may(Kind.CONTAINER) else None
        data = left.depends_on_data or right.may(Kind.TENSOR) or (inside is not None and inside.may(Kind.TENSOR))
        data = data and not (right.may(Kind.STATIC) and right.only(Kind.STATIC) and not left.may(Kind.TENSOR | Kind.SCALAR))
        return replace(SCALAR, inferred=left.inferred or right.inferred) if data else STATIC
    if left.constant is None or right.constant is None:
        return STATIC  # `t == None` compares identities in effect
    tensors = [value for value in (left, right) if value.may(Kind.TENSOR)]
    kinds: int = Kind.NOTHING
    if tensors:
        if any(isinstance(value.constant, str) for value in (left, right)):
            return STATIC
        kinds |= Kind.TENSOR
    rest = [value.kinds & ~(Kind.TENSOR | Kind.NONE) for value in (left, right)]
    if all(rest):
        both = rest[0] | rest[1]
        if both & Kind.UNKNOWN:
            kinds |= Kind.UNKNOWN
        elif both & Kind.SCALAR:
            kinds |= Kind.SCALAR
        else:
            kinds |= Kind.STATIC
    single = all(v.single or (not v.may(Kind.TENSOR) and v.only(_NUMERIC)) for v in (left, right))
    return Value(
        kinds or Kind.STATIC,
        inferred=all(value.inferred for value in tensors) if tensors else left.inferred or right.inferred,
        dtype="bool" if tensors else "",
        single=bool(tensors) and single,
    )


def _merge(known: Environment, other: Environment) -> Environment:
    """The join of two environments; ``known`` itself if ``other`` adds nothing."""
    changed: Environment | None = None
    for name, value in other.items():
        before = known.get(name)
        if before is None:
            after = value if "." not in name else None
        elif before is value or before == value:
            continue
        else:
            after = join(before, value)
            if after == before:
                continue
        if after is None:
            continue
        if changed is None:
            changed = dict(known)
        changed[name] = after
    for name in known:
        # A refinement of an attribute holds after a join only if both sides have it.
        if "." in name and name not in other:
            if changed is None:
                changed = dict(known)
            changed.pop(name, None)
    return known if changed is None else changed


def _forget(name: str, env: Environment) -> None:
    """Drop what was known of the attributes of ``name``."""
    prefix = name + "."
    for key in [key for key in env if key.startswith(prefix)]:
        del env[key]


def _path(node: ast.expr) -> str:
    """The dotted path of a name or of an attribute of a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


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
    ast.Constant: Interpreter.constant,
    ast.Name: Interpreter.name,
    ast.Attribute: Interpreter.attribute,
    ast.Subscript: Interpreter.subscript,
    ast.Slice: Interpreter.slice,
    ast.Tuple: Interpreter.sequence,
    ast.List: Interpreter.sequence,
    ast.Set: Interpreter.sequence,
    ast.Starred: Interpreter.starred,
    ast.Dict: Interpreter.dictionary,
    ast.ListComp: Interpreter.comprehension,
    ast.SetComp: Interpreter.comprehension,
    ast.GeneratorExp: Interpreter.comprehension,
    ast.DictComp: Interpreter.comprehension,
    ast.Call: Interpreter.call,
    ast.IfExp: Interpreter.if_expression,
    ast.BoolOp: Interpreter.boolean,
    ast.UnaryOp: Interpreter.unary,
    ast.BinOp: Interpreter.binary,
    ast.Compare: Interpreter.compare,
    ast.JoinedStr: Interpreter.formatted,
    ast.FormattedValue: Interpreter.formatted_value,
    ast.Lambda: Interpreter.lambda_,
    ast.NamedExpr: Interpreter.walrus,
    ast.Await: Interpreter.await_,
    ast.Yield: Interpreter.yield_,
    ast.YieldFrom: Interpreter.yield_,
}


def graph_of(function: Function) -> Graph:
    """The control-flow graph of a function."""
    return build(function.body)
