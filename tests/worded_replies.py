"""Three questions in words and nine replies to them, for the tests of grading and of the sheets that people fill in."""

from cora_nb.core import Question
from cora_nb.respondents.protocol import Reply
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import make_variants

SUN = Question("sun", "Where does the sun rise?", ("East", "West", "North", "South"), 0)
NINE = Question("nine", "What is 3 * 3?", ("9", "6", "8", "1"), 0)
RED = Question("red", 'Which colour, with "quotes", commas\nand a {reply}?', ("=red", 'blue, "dark"'), 1)
QUESTIONS = [SUN, NINE, RED]


def run(said, rule="in_words", trials=None):
    "Responses of the three questions, in turn."
    variants = make_variants(QUESTIONS, "formats", only="lfgq") * (len(said) // 3)
    return make_responses(variants, said, {"lfgq": rule}, trials or [i // 3 for i in range(len(said))])


SAID = ["In the East.", "nine", "=blue", "West", "9", Reply(error="503"), "", "-3", '+red\n"or so", perhaps']
