"""A space that can be checked by eye: words that letters are taken from, one at a time.

The latency of a word is the sum of its letters (a is 1), so the empty word is best; a letter cannot
be taken from in front of its equal, `illegal` words and `large` ones are rejected.
"""

from nkigym.search import RejectedStepError
from nkigym.search.protocol import Applied, StepKinds


class Words:
    name = "words"
    kinds = StepKinds(first=("letter",))

    def __init__(self, root, illegal=(), large=(), slack=0.0):
        self.root, self._illegal, self._large, self._slack = root, illegal, large, slack
        self.asked = []

    def statements(self, state):
        return len(state)

    def steps(self, state):
        return range(len(state))

    def apply(self, state, step):
        if state[step : step + 1] == state[step + 1 : step + 2]:
            raise RejectedStepError("in front of its equal")
        return Applied(state[:step] + state[step + 1 :], (step,))

    def kind(self, step):
        return "letter"

    def family(self, step):
        return "letter"

    def key(self, state):
        return state

    def illegal(self, state):
        return "a bad word" if state in self._illegal else None

    def over_capacity(self, state):
        return "a long word" if state in self._large else None

    def bound_ns(self, state):
        return self.worth(state) - self._slack

    def latency_ns(self, state):
        self.asked.append(state)
        return self.worth(state)

    @staticmethod
    def worth(state):
        return float(sum(ord(letter) - ord("a") + 1 for letter in state))

    def digest(self, state):
        return f"digest of {state}"

    def write_step(self, single):
        return single

    def read_step(self, given):
        if not isinstance(given, int):
            raise ValueError(f"{given!r} is not a place")
        return given
