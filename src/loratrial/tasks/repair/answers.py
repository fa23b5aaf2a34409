"""Reading which candidate an output names.

Harmless differences of format are read (`**Answer:** b`, `(B)`, the candidate's line copied whole); an output
that names none, or ends on a choice between several, is invalid. The last statement counts.
"""

import re
from collections.abc import Sequence

from loratrial.tasks.repair.puzzle import LABELS

# No class below matches a newline, and each begins at a fixed word or at the start of a line, so that the
# time is linear in the text.
_STATEMENT = re.compile(
    r"""
      (?i: answer ) [ \t*_`]* (?: : | (?i: [ ]is ) :? ) [ \t*_`(\[]* (?P<stated> [A-D] ) \b
      (?P<more> [ \t]* (?: , | / | & | (?i: or | and ) \b ) [ \t]* [A-D] \b )?
    | (?i: answer ) [ \t*_`]* : [ \t*_`(\[]* (?P<small> [a-d] ) [ \t*_`)\].]* $
    | ^ [ \t*_`(\[]* (?P<lone> [A-Da-d] ) [ \t*_`)\].:]* $
    """,
    re.VERBOSE | re.MULTILINE,
)


def read_label(text: str, candidates: Sequence[str]) -> str | None:
    """The label that an output ends on, `A` to `D`; None when there is none. Raises nothing."""
    statements = list(_STATEMENT.finditer(text))
    if not statements:
        return _copied(text.strip(), candidates)
    last = statements[-1]
    if last["more"]:
        return None
    return (last["stated"] or last["small"] or last["lone"]).upper()


def _copied(text: str, candidates: Sequence[str]) -> str | None:
    """The label of a candidate's line, when that is all that the text says."""
    for label, candidate in zip(LABELS, candidates, strict=True):
        if text[:1] == label and text[1:2] in (":", ".", ")") and text[2:].strip(" `") == candidate:
            return label
    return None
