"""What each head may be called, asked by prompts whose structure is known.

A corpus shows what a head does; it does not show why. In a text that repeats every eighth token a head
that always looks seven tokens back does the same as an induction head. So each label has a test of its
own: prompts where the answer is known, and controls, where a head that has another reason gives itself
away. And where a head looks does not show what it does: so each label has a second verdict, what becomes of
the answer directly through the head and without it.

`labels(model)` makes the prompts from the model's own tokens, the same ones each time, and asks all heads.
"""

from model.profile.battery.asking import labels as labels
from model.profile.battery.kinds import BY_NAME as BY_NAME
from model.profile.battery.kinds import CLEAR as CLEAR
from model.profile.battery.kinds import KINDS as KINDS
from model.profile.battery.kinds import LOOKED_FOR as LOOKED_FOR
from model.profile.battery.kinds import TIMES as TIMES
from model.profile.battery.kinds import Change as Change
from model.profile.battery.kinds import HeadEffect as HeadEffect
from model.profile.battery.kinds import HeadKind as HeadKind
