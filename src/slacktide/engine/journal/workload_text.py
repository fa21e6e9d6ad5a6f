"""Terms of a recorded session in the words of a workload file."""

from __future__ import annotations

from dataclasses import replace

from slacktide.engine.journal.retrace import HostHistory
from slacktide.inputs.columns.terms import format_term
from slacktide.model import NO_CONSTRAINT, Constraint, Placement, Term
from slacktide.model.matching import matches


class Terms:
    """Terms as a file can say them: one that has no words becomes an attribute of the hosts that satisfy it."""

    def __init__(self, hosts: dict[str, HostHistory]) -> None:
        self.attributes = {name: dict(life.attributes) for name, life in hosts.items()}
        self._hosts = hosts
        self._known: dict[Term, Term] = {NO_CONSTRAINT: NO_CONSTRAINT}

    def term(self, term: Term) -> Term:
        """An equal one that a file can say."""
        if term not in self._known:
            self._known[term] = self._said(term)
        return self._known[term]

    def _said(self, term: Term) -> Term:
        try:
            format_term(term, in_parentheses=True)
        except ValueError:
            name = f"slacktide.io/term-{len(self._known)}"
            for host, life in self._hosts.items():
                if matches(term, life.attributes):
                    self.attributes[host][name] = "yes"
            return Term((Constraint(name, "==", "yes"),))
        return term

    def placement(self, one: Placement) -> Placement:
        """An equal one whose terms a file can say."""
        rules = tuple(
            replace(rule, topology=replace(rule.topology, within=self.term(rule.topology.within))) for rule in one.rules
        )
        wishes = tuple(
            replace(
                wish,
                topology=replace(wish.topology, within=self.term(wish.topology.within)),
                term=self.term(wish.term),
            )
            for wish in one.preferences
        )
        return Placement(one.marks, rules, wishes)
