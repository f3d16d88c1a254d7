"""Words that end in a full stop without ending a sentence, grouped by what may follow them.

Words are in lower case, without the final full stop. The first group that has a word decides:
:mod:`surefoot.segment.sentences` looks at different context for each of them.
"""

from __future__ import annotations

__all__ = ["BEFORE_NAME", "BEFORE_NUMBER", "CLOCK", "SAYING", "STARTERS", "TRAILING", "UNFINISHED", "WHEN"]

BEFORE_NAME = frozenset(
    "dr mr mrs ms mx prof gen sen rep gov lt col maj capt cpt cmdr sgt rev hon fr pres supt messrs mme "
    "mlle mt ft v vs cf e.g eg i.e ie viz resp approx ca esp incl excl c.f subsp ssp var assoc asst dipl "
    "ing brig det insp trans tsp tbsp z.b d.h u.a bzw vgl evtl ggf p.ex par.ex sr.a sra dra ud cir civ "
    "crim supp cal stat admin".split()
)
"""The sentence always goes on: titles, "versus", "e.g.", law reporters."""

BEFORE_NUMBER = frozenset(
    "abs no nos nr núm fig figs eq eqs eqn sec secs sect subsec art arts reg regs para paras par pp pg pgs "
    "vol vols ch chap chs cl cls ref refs tab tabs app appx ex exs ver bldg apt rm ste dept tel ext pt pts "
    "pub sched ann add amend jan feb mar apr jun jul aug sep sept oct nov dec ст гл рис стр тел n° nº".split()
)
"""A number or a name follows: "Fig. 3", "No. 7", "Jan. 5"."""

TRAILING = frozenset(
    "inc ltd co corp plc llc llp bros jr sr esq etc al ave blvd rd st hwy sq u.s u.k u.n e.u u.s.a d.c "
    "u.s.c ph.d m.d b.a m.a b.sc m.sc g.m.b.h s.a s.p.a n.v b.v b.c a.d b.c.e c.e dist univ assn min max "
    "avg est int intl natl gmbh oz lb lbs ft yd yds gal qt hr hrs wk wks yr yrs mo mos sec id ibid op cit "
    "seq".split()
)
"""Stand inside a sentence or at its end; the next word decides."""

CLOCK = frozenset("a.m p.m am pm".split())
"""Times of day: they end the sentence unless a day, a month or a time zone follows."""

WHEN = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun "
    "january february march april may june july august september october november december jan feb mar apr "
    "jun jul aug sep sept oct nov dec est edt cst cdt mst mdt pst pdt gmt utc bst cet cest et pt".split()
)
"""What may follow a time of day."""

STARTERS = frozenset(
    "the this that these those it its it's he she they we you i a an in on at as if when while where why "
    "how what who which whose there here his her their our your my to for from with by after before since "
    "because although though however but and or so yet not no yes also then thus hence therefore moreover "
    "furthermore finally first second third next later once until unless over under during between both "
    "each every all some any many most several few one two three another other such still only even now "
    "today please according did does do is are was were has have had can could will would should may might "
    "must let see use".split()
)
"""Words that have a capital because they begin a sentence; hardly ever part of a name."""

SAYING = frozenset(
    "said asked wrote replied added shouted says asks writes replies answered explained told noted".split()
)
"""After a closing quotation mark and a name, these continue the sentence."""

UNFINISHED = frozenset(
    "a an the of and or to in on at by for with from as that which is are was were be been has have had "
    "will would can could may might must shall should not its their his her our your my this these those "
    "into than between under over per via if when while but nor so mr mrs ms dr prof st".split()
)
"""No sentence stops at these words: a line that ends in one continues in the next."""
