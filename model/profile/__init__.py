"""What each head of a model does over a whole corpus, and not on one sentence only.

`profile(model, corpus)` runs a model over a text of any length and adds up, for every head, where its weight
goes and what it carries. A profile takes the same memory for a thousand tokens and for a thousand million.

All sums are sums of whole numbers (fixed-point), so the order in which parts are added does not matter:
profiles of parts add up to the profile of the whole, bit for bit.
"""

from model.profile.profile import Profile as Profile
from model.profile.profile import open_profile as open_profile
from model.profile.run import profile as profile
from model.profile.searching import labelled as labelled
from model.profile.searching import search as search
