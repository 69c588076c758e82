"""Choices that say something about other choices, in many languages, and what looks like one and is none."""

import time

import pytest
from conftest import SHARED

from cora_nb.benchmarks import phrases
from cora_nb.benchmarks.load import read_benchmark
from cora_nb.benchmarks.phrases import (
    NOTA_TEXT,
    add_phrases,
    fold,
    language_of,
    names_others,
    nota_text,
    says_all,
    says_none,
)
from cora_nb.core import CoraError

HUB = SHARED / "data" / "hub"
needs_hub = pytest.mark.skipif(not HUB.is_dir(), reason=f"the real benchmarks are not at {HUB}")

NONE = {
    "en": "None of the above.|none of these|None of the other choices|None of the options given is "
    "correct|None of above|"
    "None of the answers are correct|NONE OF THE ABOVE ARE TRUE|(none of the above)",
    "zh": "以上都不对|以上皆非|以上都不是|以上答案都不对|以上选项均不正确|以上说法都不正确。|"
    "其他三项都不对|以上皆不是|以上都不對|没有正确答案",
    "ja": "上記のいずれでもない|上記のいずれにも該当しない。|上記以外|どれでもない|いずれも正しくない|"
    "該当なし|この中のどれでもない",
    "ko": "위의 어느 것도 아님|위의 어느 것도 아니다.|해당 없음|정답 없음|위의 보기 중 없음|모두 아니다",
    "de": "Keine der genannten|Keine der oben genannten Antworten|Keine der Antworten ist richtig|Keine von diesen|"
    "Keine der obigen|keine der anderen Antworten|Nichts davon|Keine Antwort ist richtig",
    "fr": "Aucune de ces réponses|Aucune des réponses ci-dessus|Aucune des propositions|Aucun de ces choix|"
    "Aucune de ces réponses n’est correcte.|Aucune réponse n'est correcte|Aucune des réponses précédentes",
    "es": "Ninguna de las anteriores|Ninguno de los anteriores|Ninguna es correcta|Ninguna de las respuestas|"
    "Ninguna de las anteriores es correcta.|Ninguna de estas|Ninguna de las otras opciones",
    "pt": "Nenhuma das anteriores|Nenhuma das alternativas|Nenhuma das opções anteriores|Nenhum dos anteriores|"
    "Nenhuma das alternativas está correta|Nenhuma das respostas acima",
    "it": "Nessuna delle precedenti|Nessuna delle risposte|Nessuna di queste|Nessuna delle altre|"
    "Nessuna delle risposte precedenti|Nessuna delle risposte è corretta",
    "nl": "Geen van bovenstaande|Geen van de bovenstaande|Geen van deze|Geen van de antwoorden is juist|"
    "Geen van de genoemde antwoorden",
    "pl": "Żadne z powyższych|Żadna z powyższych odpowiedzi|Żaden z powyższych|Żadna z podanych|"
    "Żadna odpowiedź nie jest poprawna",
    "ru": "Ничего из перечисленного|Ни один из перечисленных|Ни одно из перечисленного|Нет правильного ответа|"
    "Ни один из вариантов|Ни один из вышеперечисленных|Ничего из вышеперечисленного",
    "ar": "لا شيء مما سبق|لا شيء مما ذكر|ليس أي مما سبق|لا شيءَ ممّا سبق|لا شئ مما سبق|جميع ما سبق خطأ|لا "
    "توجد إجابة صحيحة",
    "hi": "इनमें से कोई नहीं|उपरोक्त में से कोई नहीं|इनमे से कोई नहीं|उपर्युक्त में से कोई नहीं|इनमें से कोई भी नहीं।",
    "tr": "Hiçbiri|HİÇBİRİ|Yukarıdakilerin hiçbiri|Bunların hiçbiri|Hiçbiri doğru değil|Yukarıdakilerden hiçbiri",
    "vi": "Không có đáp án nào đúng|Không có câu nào đúng|Tất cả đều sai|Không đáp án nào đúng|Cả ba đáp án đều sai",
    "id": "Tidak ada yang benar|Semua salah|Tidak ada jawaban yang benar|Bukan salah satu di atas|Semua jawaban salah",
    "fa": "هیچکدام|هیچ کدام|هيچكدام|هیچ یک از موارد بالا|هیچکدام از موارد فوق",
    "ur": "ان میں سے کوئی نہیں|مندرجہ بالا میں سے کوئی نہیں",
    "bn": "কোনোটিই নয়|উপরের কোনোটিই নয়|কোনটিই নয়",
    "uk": "Жоден з перелічених|Нічого з переліченого|Немає правильної відповіді|Жодна з перелічених відповідей",
    "el": "Κανένα από τα παραπάνω|Καμία από τις παραπάνω|Τίποτα από τα παραπάνω",
    "cs": "Žádná z uvedených|Žádná z uvedených možností|Žádná z výše uvedených|Žádná odpověď není správná",
    "ro": "Niciuna dintre cele de mai sus|Nici una din cele de mai sus|Niciuna dintre variante",
    "hu": "A fentiek közül egyik sem|Egyik sem|Egyik válasz sem helyes",
    "sv": "Inget av ovanstående|Inget av dessa|Inget av alternativen är rätt",
    "da": "Ingen af ovenstående|Ingen af de nævnte|Ingen af disse",
    "fi": "Ei mikään yllä olevista|Ei mikään edellä mainituista|Ei mikään näistä",
    "th": "ไม่มีข้อใดถูก|ไม่มีข้อใดถูกต้อง|ผิดทุกข้อ",
    "he": "אף אחת מהתשובות|אף תשובה אינה נכונה|כל התשובות שגויות",
    "bg": "Нито едно от изброените|Никое от посочените|Няма верен отговор",
}
LOOK_ALIKES = """None|Keine|Ninguna|Nessuno|Aucun|无|没有|なし|없음|Нет|Ничего|Nenhum|لا شيء|कोई नहीं
Không|Tidak ada|Geen|Żaden
None of the patients survived|None of them|None of the offspring will be affected|None of the above are false.
None of the above is a true statement.|none of the above; Cohen holds that animals can have rights|None of the stereos.
none, all are equally important|Neither A nor B|All of the above|Keine der Aussagen über A|Keine der genannten Personen
Keine Antwort|Nichts|Aucune des cellules|Ninguna de las células|Nessuna delle proteine|Ни один из пациентов|以上|不对|都
以上公司都不对外投资|上記の患者|ไม่มี|위의 약물|هیچ|Hiç|Egy sem|NDA|"""


@pytest.mark.parametrize("code", NONE)
def test_none_of_the_above(code):
    missed = [text for text in NONE[code].split("|") if not says_none(text)]
    assert missed == []
    assert says_none(nota_text(code)) and not says_all(nota_text(code)) and not names_others(nota_text(code))


def test_look_alikes_of_none_of_the_above():
    assert [text for text in LOOK_ALIKES.replace("\n", "|").split("|") if says_none(text)] == []


ALL = """All of the above|all of these.|All the above|All of the options given are correct
All of the above answers are correct.
以上都对|以上都是|以上选项都正确|以上皆是|全部正确|上記のすべて|すべて正しい|위의 모든 것|모두 맞다
Alle genannten|Alle oben genannten
Alle Antworten sind richtig|Toutes ces réponses|Toutes les réponses ci-dessus|Todas las anteriores|Todas son correctas
Todas as anteriores|Todas as alternativas estão corretas|Tutte le precedenti|Все перечисленное|Всё вышеперечисленное
جميع ما سبق|كل ما سبق|उपरोक्त सभी|इनमें से सभी|Semua benar|Hepsi|Yukarıdakilerin hepsi|Tất cả đều đúng|Alle bovenstaande
Wszystkie powyższe|همه موارد|উপরের সবগুলো|Усі перелічені|Όλα τα παραπάνω|ถูกทุกข้อ|כל התשובות נכונות"""


def test_all_of_the_above():
    assert [text for text in ALL.replace("\n", "|").split("|") if not says_all(text) or says_none(text)] == []
    others = "All|Alle|Todas|都|全部|すべて|All of them|all of these questions|All patients survived|"
    others += "None of the above|A and B"
    assert [text for text in others.split("|") if says_all(text)] == []


def test_every_language_has_both():
    assert len(phrases._LANGUAGES) >= 30
    for code, language in phrases._LANGUAGES.items():
        assert language.none and language.all and "" not in language.none | language.all, code
        assert says_none(language.nota) and not says_all(language.nota), code
    assert not phrases._known_phrases("none") & phrases._known_phrases("all")


OTHERS = """Both A and C|both A and B.|A and B only|A & B|Neither (a) nor (b).|(A), (B), and (C)|A, B and C
A B and C|Either A or B|both A and D are correct.|Options A and B|a or b|Both of these
Neither of the above|Any of the above
Sowohl A als auch B|Weder A noch B|A und C|A et B|Ni A ni B|A y B|Tanto A como B|A e B|A e C sono corrette|A en B|A i B
Только А и Б|Ни А, ни Б|А и В верны|A和B|A和B都对|A、C|A与D|AとB|AとBの両方|A와 B|A ve B|Cả A và B
A dan B|A och B|A و B|A और B"""


def test_choices_that_name_others():
    assert [text for text in OTHERS.replace("\n", "|").split("|") if not names_others(text)] == []
    alone = "A|B|A.|C++|CIA|FED|EEG|DNA|Vitamins A and C|P(A and B)|f(a) = f(b)|Both sides|Either party|"
    alone += "I and II only|1 and 2"
    alone += "|a horse|Neither|Country A and B are alike|A and beta"
    assert [text for text in alone.split("|") if names_others(text)] == []


def test_long_texts_take_no_time():
    began = time.process_time()
    for text in ("a " + "e " * 5000 + "x", "both " * 5000, "(a) and " * 5000, "a, " * 9999, "A" * 9999, "以上" * 9999):
        assert not names_others(text) and not says_none(text) and not says_all(text)
    assert time.process_time() - began < 2


def test_own_words_and_signs():
    assert says_none("Keine Ahnung", nota="keine ahnung!") and not says_none("Keine Ahnung")
    assert says_none("—", nota="—") and not says_none("–", nota="—") and not says_none("", nota="—")
    assert not says_none("") and not says_none("?") and not says_all("...") and not names_others("")
    assert says_none("Ｎｏｎｅ　ｏｆ　ｔｈｅ　ａｂｏｖｅ")  # full-width
    assert nota_text("en") == NOTA_TEXT


@pytest.mark.parametrize("pair", ["की का", "कि की", "ไม ไม่", "নয় নয়া", "क़ क", "ñ n", "е и"])
def test_marks_that_tell_words_apart_are_kept(pair):
    one, other = pair.split()
    assert fold(one) != fold(other)


def test_no_phrase_becomes_an_ordinary_word_without_its_marks():
    assert fold("नहीं") != fold("नह") and fold("ё") == fold("е") and fold("Straße") == fold("STRASSE")


@pytest.fixture
def restored(monkeypatch):
    "The table as it is, after the test too."
    kept = {
        code: phrases._Language(x.name, x.nota, {*x.none}, {*x.all}, x.words) for code, x in phrases._LANGUAGES.items()
    }
    phrases._known_phrases.cache_clear()
    monkeypatch.setattr(phrases, "_LANGUAGES", kept)
    yield
    phrases._known_phrases.cache_clear()


def test_a_language_of_ones_own(restored):
    with pytest.raises(CoraError, match="no None of the above is known in 'eo', only in en, zh"):
        nota_text("eo")
    add_phrases("eo", all=["Ĉiuj supraj"])
    assert says_all("ĉiuj supraj.")
    with pytest.raises(CoraError, match="no None of the above is known in 'eo'"):
        nota_text("eo")
    add_phrases("eo", none=["Neniu el la supraj", "neniu el {tiuj/ili}"])
    assert nota_text("eo") == "Neniu el la supraj" and says_none("Neniu el ili")
    add_phrases("pt", none=["NDA"])
    assert says_none("n.d.a.") and nota_text("pt") == "Nenhuma das anteriores"


@pytest.mark.parametrize("bad", [{"none": "Neniu"}, {"none": [1]}, {"all": ["..."]}, {"none": ["{/a}"]}, {"all": None}])
def test_what_is_no_phrase(bad, restored):
    with pytest.raises(CoraError, match="must be made of texts with a letter in them"):
        add_phrases("eo", **bad)
    with pytest.raises(CoraError, match="language must be"):
        add_phrases("", none=["Neniu el tiuj"])


TEXTS = {
    "en": "Which of the following is the capital of France? What is the name of the process by which plants make food?",
    "de": "Welche der folgenden Aussagen ist richtig? Wie heißt die Hauptstadt von Frankreich und wer wird gewählt?",
    "fr": "Quelle est la capitale de la France? Lequel des éléments suivants est un métal dans le tableau?"
    " Qui est le roi?",
    "es": "¿Cuál es la capital de Francia? ¿Qué elemento es un metal en la tabla? ¿Quién fue el primer "
    "presidente del país?",
    "pt": "Qual é a capital da França? Qual dos seguintes elementos é um metal? O que não é uma função do fígado?",
    "it": "Qual è la capitale della Francia? Quale dei seguenti elementi è un metallo? Che cosa non è una "
    "funzione del fegato?",
    "nl": "Wat is de hoofdstad van Frankrijk? Welke van de volgende stoffen is een metaal? Wat wordt niet "
    "door het bloed vervoerd?",
    "pl": "Jaka jest stolica Francji? Który z tych pierwiastków jest metalem? Co nie jest funkcją wątroby i nerek?",
    "ru": "Какая столица Франции? Какой из этих элементов является металлом? Что не относится к функциям "
    "печени и почек?",
    "uk": "Яка столиця Франції? Який з цих елементів є металом? Що не належить до функцій печінки та нирок?",
    "tr": "Aşağıdakilerden hangisi bir metaldir? Fransa için hangisi doğru olarak verilen bir şehirdir? "
    "Bu hangisi değildir?",
    "vi": "Thủ đô của nước Pháp là thành phố nào? Nguyên tố nào là một kim loại? Chức năng nào không của gan và thận?",
    "id": "Apa nama ibu kota dari negara ini? Manakah yang merupakan logam? Apa yang tidak dilakukan oleh "
    "hati dan ginjal?",
    "zh": "法国的首都是哪里？下列元素中哪一种是金属？肝脏的功能不包括哪一项？这条河流有多长？",
    "ja": "フランスの首都はどこですか。次の元素のうち金属はどれですか。肝臓の働きでないものはどれか。",
    "ko": "프랑스의 수도는 어디인가? 다음 원소 중 금속은 무엇인가? 간의 기능이 아닌 것은 무엇인가?",
    "ar": "ما هي عاصمة فرنسا؟ أي من العناصر التالية هو معدن؟ ما هي الوظيفة التي لا تقوم بها الكبد في الجسم؟",
    "fa": "پایتخت فرانسه کدام است؟ کدام یک از این عناصر فلز است؟ این کار را در بدن کدام عضو انجام می دهد؟",
    "hi": "फ्रांस की राजधानी क्या है? निम्नलिखित में से कौन सी धातु है? इस नदी का नाम किस देश से और कैसे है?",
    "el": "Ποια είναι η πρωτεύουσα της Γαλλίας; Ποιο από τα παρακάτω στοιχεία είναι μέταλλο;",
    "th": "เมืองหลวงของประเทศฝรั่งเศสคือข้อใด ธาตุใดต่อไปนี้เป็นโลหะ",
    "he": "מהי בירת צרפת? איזה מהיסודות הבאים הוא מתכת? מה אינו תפקיד של הכבד?",
}


@pytest.mark.parametrize("code", TEXTS)
def test_language_of(code):
    assert language_of([TEXTS[code]] * 4) == code


def test_language_of_is_cautious():
    assert language_of([]) is None and language_of(["What is it?"]) is None
    assert language_of(["2 + 2 = ?", "x² − 1 = 0", "α β γ"] * 20) is None
    assert language_of([TEXTS["de"], TEXTS["en"]] * 5) is None
    assert language_of([TEXTS["zh"], TEXTS["ja"]] * 5) in (None, "ja")
    assert language_of(["Quid est in foro Romano, et quis est rex?"] * 10) is None
    assert language_of(iter([TEXTS["en"]] * 4)) == "en"


@needs_hub
@pytest.mark.parametrize(
    "name, n", [("mmlu", 191), ("medqa", None), ("arc", None), ("truthfulqa", None), ("csqa", None)]
)
def test_real_benchmarks(name, n):
    questions = read_benchmark(name, path=HUB).questions
    assert language_of(q.text for q in questions) == "en"
    english = phrases._LANGUAGES["en"]
    choices = [c for q in questions for c in q.choices]
    assert {fold(c) for c in choices if says_none(c)} <= english.none
    assert {fold(c) for c in choices if says_all(c)} <= english.all
    if n is not None:
        assert sum(any(map(says_none, q.choices)) for q in questions) == n
