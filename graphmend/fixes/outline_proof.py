"""What is printed with a fix of *outline*: each obligation and how it was discharged."""

from __future__ import annotations

from collections.abc import Sequence

from graphmend.findings import Proof
from graphmend.fixes.capture import Capture
from graphmend.fixes.carry import Certainty
from graphmend.flow.text import brief
from graphmend.obligations import Obligation

_STATIC, _TRACED, _ASSUMED = "statically", "at trace time", "assumed"
_ALWAYS = {
    Obligation.ONLY_OBSERVES: "every moved statement prints, logs, warns or raises",
    Obligation.VALUE_UNUSED: "the statement is a whole one, so nothing uses a value of it",
    Obligation.TOTAL_ARGUMENTS: "each argument is a name, is evaluated by the original as well, or cannot fail",
    Obligation.FRESH_STATE: "the moved text reads its arguments and constants of the module only",
    Obligation.NOT_IN_ARM: "no function that a selection or transform runs reaches the statement",
    Obligation.NOT_SCRIPTED: "nothing says that TorchScript compiles the function",
    Obligation.MOVABLE_TEXT: "no part of the text depends on the class or function around it",
    Obligation.CALLER_LOCATION: "the text asks for no line of a caller",
}
_RAISING = {
    Obligation.NO_CATCHING_HANDLER: "nothing in the function or its known callers could act on the exception",
    Obligation.NO_EARLIER_MUTATION: "nothing visible is changed before it in the function or its known callers",
}
_UNSEEN = {
    Obligation.NO_CATCHING_HANDLER: "inside of a handler that is not in sight the text runs in place, as before",
    Obligation.NO_EARLIER_MUTATION: "where code that is not in sight has changed an object before, it does so, too",
}
_CALLERS = (
    "an exception is assumed to leave the compiled region: memory that code out of sight writes behind it is "
    "unspecified then, as with a captured assert; code that is not known is assumed to return new tensors"
)


def proof_of(captures: Sequence[Capture], raises: bool) -> tuple[Proof, ...]:
    """The proof of a fix with these arguments.

    Args:
        captures: the arguments of the call.
        raises: whether the moved text raises.
    """
    listed = ", ".join(f"`{brief(capture.expression)}`" for capture in captures) or "nothing"
    doubtful = ", ".join(
        f"`{brief(capture.expression)}`" for capture in captures if capture.certainty is not Certainty.YES
    )
    proof = [Proof(obligation.value, _STATIC, detail) for obligation, detail in _ALWAYS.items()]
    bound = f"the call reads {listed}: bound there, or read there by the original too"
    proof.append(Proof(Obligation.BOUND_NAMES.value, _STATIC, bound))
    if doubtful:
        detail = f"if {doubtful} is no value that a graph can carry, the text runs in place, as before"
        proof.append(Proof(Obligation.CARRIABLE_ARGUMENTS.value, _TRACED, detail))
    else:
        proof.append(Proof(Obligation.CARRIABLE_ARGUMENTS.value, _STATIC, "all arguments are tensors or plain values"))
    if raises:
        proof += [Proof(obligation.value, _STATIC, detail) for obligation, detail in _RAISING.items()]
        proof += [Proof(obligation.value, _TRACED, detail) for obligation, detail in _UNSEEN.items()]
        proof.append(Proof(Obligation.NO_EARLIER_MUTATION.value, _ASSUMED, _CALLERS))
    return tuple(proof)
