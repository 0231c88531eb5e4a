"""Where parameters are used: everything that no noted layer sees must be refused, not left out of a gradient.

Every node of a graph has a number that grows while the graph is made, so a call of a layer is a span of them.
A parameter may be used within the calls of layers that hold it, and nowhere else; what was made within a call
may leave it as an output, and in no other way.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from sourdine.core.errors import InvalidParameter
from sourdine.learning.gradients.calls import Call, Noted
from sourdine.learning.gradients.entangled import Entangled


def check_uses(losses: Tensor, calls: Sequence[Call], known: Mapping[int, str]) -> None:
    """Refuse a loss that depends on a parameter elsewhere than through the calls that were noted.

    `known` names the parameters that are trained, by their ids.
    """
    noted = [call for call in calls if isinstance(call, Noted)]
    spans: defaultdict[str, list[range]] = defaultdict(list)
    for call in noted:
        for known_name in call.names.values():
            spans[known_name].append(call.span)
    exits = _Exits(noted)
    for user, used in _links(losses.grad_fn):
        tensor = getattr(used, "variable", None)
        if tensor is None:
            if (where := exits.passed(user, used)) is not None:
                raise Entangled(
                    f"Something that the layer '{where}' made is used without being one of its outputs, so "
                    "its gradient would be lost. Let the layer return it, in a tuple or a dict."
                )
        elif (name := known.get(id(tensor))) is not None:
            if not any(number(user) in span for span in spans[name]):
                raise Entangled(
                    f"The parameter '{name}' is used outside of the layer that holds it: by a function such "
                    "as torch.nn.functional.linear, or in a penalty. The gradients of a batch cannot be told "
                    "apart there. Call a layer that holds it (a tied head is an nn.Linear whose weight "
                    "is set to that of the embedding), and leave penalties to the optimizer's weight_decay."
                )
        elif isinstance(tensor, nn.Parameter):
            raise _foreign(tensor)


def check_foreign(losses: Tensor, known: Mapping[int, str]) -> None:
    """Refuse a loss that depends on a parameter which is not trained and yet wants a gradient."""
    for _, used in _links(losses.grad_fn):
        tensor = getattr(used, "variable", None)
        if isinstance(tensor, nn.Parameter) and id(tensor) not in known:
            raise _foreign(tensor)


def _foreign(tensor: Tensor) -> InvalidParameter:
    return InvalidParameter(
        f"The loss depends on a parameter of shape {tuple(tensor.shape)} that is not one of the "
        "model that is trained, so it would do nothing. It may be one of the model that was passed, "
        "of which a copy is trained: leave penalties to the optimizer's weight_decay. Make a part "
        "with parameters of its own a layer of the model, or freeze it with requires_grad_(False)."
    )


def number(node: Node) -> int:
    """The place of a node in the order in which nodes were made."""
    return int(node._sequence_nr())


def next_number() -> int:
    """The number that the next node gets."""
    return int(torch._C._autograd._get_sequence_nr())


class _Exits:
    """Calls in the order in which they began, and by what their results may leave them."""

    def __init__(self, noted: Sequence[Noted]) -> None:
        self._calls = [(call.span, {edge.node for edge in call.edges}, call.where) for call in noted]
        self._owner: dict[int, list[int]] = {}
        for place, (span, _, _) in enumerate(self._calls):
            for inside in span:
                self._owner.setdefault(inside, []).append(place)

    def passed(self, user: Node, used: Node) -> str | None:
        """The layer that a link leaves by no output, if it leaves one so."""
        for place in self._owner.get(number(used), ()):
            span, edges, where = self._calls[place]
            if used not in edges and number(user) not in span:
                return where
        return None


def _links(root: Node | None) -> Iterator[tuple[Node, Node]]:
    """All pairs of nodes in a graph of which the first uses the second."""
    nodes, left = {root}, [root]
    while left:
        node = left.pop()
        if node is None:
            continue
        for other, _ in node.next_functions:
            if other is None:
                continue
            yield node, other
            if other not in nodes:
                nodes.add(other)
                left.append(other)
