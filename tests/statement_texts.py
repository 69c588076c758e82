"What the tests of statements and of their checks share: a question, and statements built by rule."

from cora_nb.core import Question

SUN = Question("sun", "Where does the sun rise?", ("East", "West", "North", "South"), 0)


def one_line(text):
    return " ".join(text.split())


def built(q, i):
    return f'Is it true that the right answer to "{one_line(q.text)}" is "{one_line(q.choices[i])}"?'


def places(questions):
    return [(q, i) for q in questions for i in range(q.n_choices)]
