"""Whom to give up where there is lastingly too little room: a plan, made now and then (docs/plan.md).

:mod:`.record` keeps how much room there was, :mod:`.members` what each service may still lose, :mod:`.giving_up`
says who cannot be kept, and :mod:`.making` makes a plan of it when one is due.
"""
