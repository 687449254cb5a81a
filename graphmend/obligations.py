"""The closed list of obligations: what must hold before a transform may rewrite code (design, sections 4 and 5).

A fix lists each of its obligations with how it was discharged; a refusal names the one that failed. Rule packs and
reports use the identifiers, `docs/` and the refusals print the descriptions.
"""

from __future__ import annotations

from enum import Enum


class Obligation(str, Enum):
    """An obligation's stable identifier."""

    # shared
    SUPPORTED_FORM = "supported-form"
    MOVABLE_TEXT = "movable-text"
    NOT_SCRIPTED = "not-scripted"
    BOUND_NAMES = "bound-names"
    REWRITE_KNOWN = "rewrite-known"
    # outline
    VALUE_UNUSED = "value-unused"
    ONLY_OBSERVES = "only-observes"
    TOTAL_ARGUMENTS = "total-arguments"
    CARRIABLE_ARGUMENTS = "carriable-arguments"
    FRESH_STATE = "fresh-state"
    NO_CATCHING_HANDLER = "no-catching-handler"
    NO_EARLIER_MUTATION = "no-earlier-mutation"
    NOT_IN_ARM = "not-in-arm"
    CALLER_LOCATION = "caller-location"
    # predicate
    ONE_ELEMENT = "one-element"
    PURE_ARMS = "pure-arms"
    TOTAL_ARMS = "total-arms"
    AGREEING_ARMS = "agreeing-arms"
    SAME_LEAVES = "same-leaves"
    BOUNDED_DERIVATIVE = "bounded-derivative"
    IDENTITY = "identity"
    LAZY_CACHE = "lazy-cache"
    # smaller rewrites
    IMPLIED_GUARD = "implied-guard"
    SAME_TRUTH = "same-truth"


DESCRIPTIONS: dict[Obligation, str] = {
    Obligation.SUPPORTED_FORM: "the statement has a form that the transform knows",
    Obligation.REWRITE_KNOWN: "there is a rewrite that keeps what the code does",
    Obligation.MOVABLE_TEXT: "the text means the same inside another function",
    Obligation.NOT_SCRIPTED: "TorchScript does not compile the function",
    Obligation.BOUND_NAMES: "every name that the rewritten code reads is certainly bound there",
    Obligation.VALUE_UNUSED: "nothing uses the value of the call",
    Obligation.ONLY_OBSERVES: "the statement prints, logs, warns or raises, and changes nothing that the graph reads",
    Obligation.TOTAL_ARGUMENTS: "evaluating the arguments has no effect and cannot fail where the original would not",
    Obligation.CARRIABLE_ARGUMENTS: "the arguments can travel through the graph",
    Obligation.FRESH_STATE: "the moved text reads no state that the region may write",
    Obligation.NO_CATCHING_HANDLER: "no handler in a known frame of the region catches the exception",
    Obligation.NO_EARLIER_MUTATION: "no known frame of the region changes visible state before the exception",
    Obligation.NOT_IN_ARM: "the statement is not reached from an arm of a selection or from a cached function",
    Obligation.CALLER_LOCATION: "the reported location stays the user's line",
    Obligation.ONE_ELEMENT: "the condition is a tensor of one element",
    Obligation.PURE_ARMS: "both arms are free of side effects and draw no random numbers",
    Obligation.TOTAL_ARMS: "neither arm can fail on values for which it was not taken",
    Obligation.AGREEING_ARMS: "both arms give tensors of the same shape, dtype and device",
    Obligation.SAME_LEAVES: "both arms read the same tensors that may require a gradient",
    Obligation.BOUNDED_DERIVATIVE: "the derivative of each arm is finite for every input",
    Obligation.IDENTITY: "nothing depends on the result being the same object as an argument or attribute",
    Obligation.LAZY_CACHE: "a lazily created attribute may be created earlier",
    Obligation.IMPLIED_GUARD: "the condition implies the added static conjunct",
    Obligation.SAME_TRUTH: "the new condition is true exactly when the old one is",
}
