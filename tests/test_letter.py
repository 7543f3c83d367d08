"""The letter rules on replies as models write them, each with its letter and its rule."""

import unicodedata

import pytest

from qualeval.graders.letter import VERSION, Reading, read_letter

FOUR = ("red", "blue", "green", "grey")
TEN = tuple(f"the text of option number {number}" for number in range(10))
LOOK_ALIKES = dict(zip("АВСЕНІЈΑΒΕΗΙ", "ABCEHIJABEHI", strict=True))

# Reply, letter that counts, rule. Four options: red, blue, green, grey.
CREDITED = [
    # bare
    ("B", "B", "bare"),
    ("A", "A", "bare"),
    (" B\n", "B", "bare"),
    ("(B)", "B", "bare"),
    ("[B]", "B", "bare"),
    ("**B**", "B", "bare"),
    ("__B__", "B", "bare"),
    ("B.", "B", "bare"),
    ("B)", "B", "bare"),
    ("B:", "B", "bare"),
    ("B!", "B", "bare"),
    ("`B`", "B", "bare"),
    ("$B$", "B", "bare"),
    ("$$\\boxed{B}$$", "B", "bare"),
    ("\\boxed{B}", "B", "bare"),
    ("\\\\boxed{B}", "B", "bare"),
    ("\\[\n\\boxed{B}\n\\]", "B", "bare"),
    ("\\(\\mathbf{B}\\)", "B", "bare"),
    ("$\\boxed{\\textbf{(C)}}$", "C", "bare"),
    ("“B”", "B", "bare"),
    ("《B》", "B", "bare"),
    ("【B】。", "B", "bare"),
    ("<b>B</b>", "B", "bare"),
    ("<B>", "B", "bare"),
    ("- B", "B", "bare"),
    ("### B", "B", "bare"),
    ("> **B**", "B", "bare"),
    (": B", "B", "bare"),
    ("```\nB\n```", "B", "bare"),
    ("```text\nB\n```", "B", "bare"),
    ("B<|im_end|>", "B", "bare"),
    ("B</s>", "B", "bare"),
    ("B\ufffd", "B", "bare"),
    ("Ⓑ", "B", "bare"),
    ("🄑", "B", "bare"),
    ("🅱\ufe0f", "B", "bare"),
    ("𝐁", "B", "bare"),
    ("b", "B", "bare_lowercase"),
    ("**b**.", "B", "bare_lowercase"),
    ("⒝", "B", "bare_lowercase"),
    ("В", "B", "bare_lookalike"),
    ("(С)", "C", "bare_lookalike"),
    ("Β", "B", "bare_lookalike"),
    # anchored
    ("Answer: B", "B", "anchored"),
    ("Answer: A", "A", "anchored"),
    ("Answer: A.", "A", "anchored"),
    ("Answer: A\nbecause of it", "A", "anchored"),
    ("Answer: (A) because of it", "A", "anchored"),
    ("Answer: **A** because of it", "A", "anchored"),
    ("**Answer: D**", "D", "anchored"),
    ("The answer is (C).", "C", "anchored"),
    ("The answer is C because it is green.", "C", "anchored"),
    ("The correct answer is: C", "C", "anchored"),
    ("The answer would be C", "C", "anchored"),
    ("Option C", "C", "anchored"),
    ("Choice C", "C", "anchored"),
    ("My final answer: C", "C", "anchored"),
    ("Final Answer: C", "C", "anchored"),
    ("FINAL_ANSWER: C", "C", "anchored"),
    ("## Answer\n\n- **C**", "C", "anchored"),
    ("Answer - B", "B", "anchored"),
    ("Answer → B", "B", "anchored"),
    ("answer = B", "B", "anchored"),
    ("Answer is option B", "B", "anchored"),
    ("the correct option is (B)", "B", "anchored"),
    ("correct choice: B", "B", "anchored"),
    ("The correct answer(s): B", "B", "anchored"),
    ("Answer: <b>C</b>", "C", "anchored"),
    ("<answer>B</answer>", "B", "anchored"),
    ("<answer>B</answer>\nC is wrong", "B", "anchored"),
    ("Answer: \\boxed{B}", "B", "anchored"),
    ("Answer: \\(B\\)", "B", "anchored"),
    ("\\boxed{\\text{Answer: B}}", "B", "anchored"),
    ('{"answer":"B"}', "B", "anchored"),
    ('{"answer": "B", "why": "it is blue"}', "B", "anchored"),
    ("{'answer': 'B'}", "B", "anchored"),
    ("答案：B", "B", "anchored"),
    ("正确答案是B。", "B", "anchored"),
    ("答案：（B）", "B", "anchored"),
    ("Answer: B<|im_end|>", "B", "anchored"),
    ("Answer: B (not A)", "B", "anchored"),
    ("Answer: B, not C", "B", "anchored"),
    ("Answer: B, I think", "B", "anchored"),
    ("Answer: B — C is red", "B", "anchored"),
    ("Answer: B and here is why", "B", "anchored"),
    ("Answer: B. A proton is positive.", "B", "anchored"),
    ("Answer: B. It is bigger than C.", "B", "anchored"),
    ("Answer: B\nAnswer: B", "B", "anchored"),
    ("B\n\nThe answer is B.", "B", "anchored"),
    ("Option A is wrong, the answer is C", "C", "anchored"),
    ("What is wrong? Answer: B", "B", "anchored"),
    ("The first is wrong\nAnswer: B", "B", "anchored"),
    ("\nAnswer:\n\n\n      B", "B", "anchored"),
    ("Sorry, the answer is B.", "B", "anchored"),
    ("Options:\nA) red\nB) blue\nC) green\nD) grey\nAnswer: B) blue", "B", "anchored"),
    ("A. red\nB. blue\nC. green\nD. grey\n\nAnswer: B", "B", "anchored"),
    # boxed
    ("So \\boxed{B}", "B", "boxed"),
    ("So $\\boxed{\\text{(B)}}$ it is", "B", "boxed"),
    ("So \\boxed{\\mathbf{B}}.", "B", "boxed"),
    ("So \\boxed{\\text{B: blue}}", "B", "boxed"),
    ("So \\boxed{B} and again \\boxed{B}", "B", "boxed"),
    # first line
    ("B\n\nBecause it is blue", "B", "first_line"),
    ("**B**\n\nBecause A is red", "B", "first_line"),
    ("B\nWait, A proton is positive.", "B", "first_line"),
    ("C\nC", "C", "first_line"),
    ("B B", "B", "first_line"),
    ("B. blue", "B", "letter_with_text"),
    ("B) Blue.", "B", "letter_with_text"),
    ("B. bl", "B", "letter_with_text"),
    ("(B) **blue**", "B", "letter_with_text"),
    ("**B. blue**", "B", "letter_with_text"),
    ("**B** blue", "B", "letter_with_text"),
    ("```text\nB. blue\n```", "B", "letter_with_text"),
    ("B. something else", "B", "letter_first_line"),
    ("B, because it is blue, not A", "B", "letter_first_line"),
    ("C) 4.5 m/s", "C", "letter_first_line"),
    ("**C** - because", "C", "letter_first_line"),
    ("B. C\u0327a va", "B", "letter_first_line"),
]

NOT_CREDITED = [
    # nothing
    (None, "empty"),
    ("", "empty"),
    (" \u200b\n", "empty"),
    ("**", "no_letter"),
    ("\\boxed{}", "no_letter"),
    # prose
    ("A proton is positive.", "no_letter"),
    ("I think so", "no_letter"),
    ("The answer is Apple", "no_letter"),
    ("answer is A matter of taste", "no_letter"),
    ("Answer: A *matter* of taste", "no_letter"),
    ("Answer: I don't know", "no_letter"),
    ("Answer: I'm not sure", "no_letter"),
    ("Answer: Let's think", "no_letter"),
    ("My answers: none", "no_letter"),
    ("The answer is b because", "no_letter"),
    ("Letter: B", "no_letter"),
    ("It is B.", "no_letter"),
    ("Let me think.\n\nB", "no_letter"),
    ("b\nbecause", "no_letter"),
    ("I, as a model, like red", "no_letter"),
    ("either A or B", "no_letter"),
    ("I cannot answer this question.", "refusal"),
    ("I’m sorry, but no.", "refusal"),
    ("As an AI, I have no opinion.", "refusal"),
    # other alphabets, accents, strike-through
    ("Б", "no_letter"),
    ("Answer: В", "no_letter"),
    ("А\nbecause", "no_letter"),
    ("À", "no_letter"),
    ("A\u0300", "no_letter"),
    ("Answer: A\u0300", "no_letter"),
    ("Ⅽ", "no_letter"),
    ("\ufdfa", "no_letter"),
    ("~~B~~", "no_letter"),
    # doubtful
    ("B?", "no_letter"),
    ("Answer: B?", "no_letter"),
    ("Is the answer B?", "no_letter"),
    ("Not B", "no_letter"),
    ("Answer: not B", "no_letter"),
    ("The answer is not B", "no_letter"),
    ("It is not option B", "no_letter"),
    ("I don't think the correct answer is B", "no_letter"),
    ("We can rule out option B", "no_letter"),
    ("An incorrect answer: B", "no_letter"),
    ("If the answer is B then it is blue", "no_letter"),
    ("Option B is wrong", "no_letter"),
    ("Option B can't be right", "no_letter"),
    ("**B** is wrong", "no_letter"),
    ("Answer: B or something", "no_letter"),
    ("Answer: A or something", "no_letter"),
    ("Answer: A and something", "no_letter"),
    # formulas, abbreviations, compounds
    ("The answer is E = mc^2", "no_letter"),
    ("The answer is $B = 3$", "no_letter"),
    ("Answer: F(x)", "no_letter"),
    ("Answer: C++", "no_letter"),
    ("Answer: X-ray", "no_letter"),
    ("Answer: B'", "no_letter"),
    ("Answer: D.C.", "no_letter"),
    ("D.C. circuits", "no_letter"),
    ("\\boxed{H \\ll E}", "no_letter"),
    ("\\boxed{\\mathbf{B} = 3}", "no_letter"),
    ("\\boxed{B is it}", "no_letter"),
    ("So \\boxed{B", "no_letter"),
    # echo of the options
    ("A. red\nB. blue\nC. green\nD. grey", "no_letter"),
    ("A) red B) blue C) green D) grey", "no_letter"),
    # several
    ("A or B", "several_letters:AB"),
    ("A, B", "several_letters:AB"),
    ("A B C D", "several_letters:ABCD"),
    ("A/C", "several_letters:AC"),
    ("A: B", "several_letters:AB"),
    ("A, or B maybe", "several_letters:AB"),
    ("C\nD", "several_letters:CD"),
    ("The answer is A or B", "several_letters:AB"),
    ("The answer is A or maybe B", "several_letters:AB"),
    ("The answer is A or option B", "several_letters:AB"),
    ("Answer: A/B", "several_letters:AB"),
    ("Answer: A, C", "several_letters:AC"),
    ("Answer: A and C", "several_letters:AC"),
    ("Answer: A, B, and D", "several_letters:ABD"),
    ("Answer: A B D", "several_letters:ABD"),
    ("answer: a, b", "several_letters:AB"),
    ('{"answer": ["A", "B"]}', "several_letters:AB"),
    ("Options B and C are both right", "several_letters:BC"),
    ("Options B and A are both right", "several_letters:AB"),
    ("Answer: B. Answer: C", "several_letters:BC"),
    ("B\n\nOption C", "several_letters:BC"),
    ("Answer: B. Wait, it's C.", "several_letters:BC"),
    ("B\nActually, C", "several_letters:BC"),
    ("So \\boxed{B} or \\boxed{C}", "several_letters:BC"),
    ("\\boxed{B, C}", "several_letters:BC"),
    ("Option A is wrong, Option B is wrong, the answer is C", "several_letters:BC"),
    # conflict and range
    ("B. green", "letter_text_conflict"),
    ("B: Green.", "letter_text_conflict"),
    ("B. green\n\nAnswer: B", "letter_text_conflict"),
    ("Answer: J", "out_of_range:J"),
    ("Z", "out_of_range:Z"),
    ("I", "out_of_range:I"),
    ("e", "out_of_range:E"),
    ("J. whatever", "out_of_range:J"),
]


def _folds_to(character: str, letter: str) -> bool:
    if 0x1F170 <= ord(character) < 0x1F18A:
        return letter == chr(ord(character) - 0x1F170 + ord("A"))
    plain = LOOK_ALIKES.get(character, unicodedata.normalize("NFKC", character))
    return letter in plain.upper()


def _assert_explained(text: str | None, reading: Reading) -> None:
    assert reading.reason.endswith(".") and " " in reading.reason
    if reading.span is not None:
        start, end = reading.span
        named = reading.letter or reading.reason.removeprefix("The reply gives ")[0]
        if reading.rule == "letter_text_conflict":
            named = reading.reason.removeprefix("The first line is ")[0]
        assert _folds_to((text or "")[start:end], named)


def test_table_is_large() -> None:
    """The table keeps the size that makes it worth trusting."""
    assert len(CREDITED) + len(NOT_CREDITED) >= 80


@pytest.mark.parametrize(("text", "letter", "rule"), CREDITED)
def test_letter_counts(text: str, letter: str, rule: str) -> None:
    """A reply with one answer gives its letter, the rule, the place and a reason."""
    reading = read_letter(text, FOUR)
    assert (letter, rule) == (reading.letter, reading.rule)
    assert reading.span is not None
    _assert_explained(text, reading)


@pytest.mark.parametrize(("text", "rule"), NOT_CREDITED)
def test_no_letter_counts(text: str | None, rule: str) -> None:
    """A reply without one definite answer gives no letter and says why."""
    reading = read_letter(text, FOUR)
    assert (None, rule) == (reading.letter, reading.rule)
    _assert_explained(text, reading)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("I", "I"),
        ("i", "I"),
        ("(I)", "I"),
        ("Answer: I", "I"),
        ("The answer is I.", "I"),
        ("answer: i.", "I"),
        ("I. " + TEN[8], "I"),
        ("Answer: I don't know", None),
        ("The answer is I think the first", None),
        ("Answer: i.e. the first", None),
        ("Answer: I, II and III", None),
        ("I and II only", None),
        ("I, too, am not sure", None),
    ],
)
def test_pronoun_and_numeral_are_no_letter_i(text: str, letter: str | None) -> None:
    """With ten options I is a letter only where it is neither a pronoun nor a numeral."""
    assert letter == read_letter(text, TEN).letter


def test_every_letter_of_26_options_is_read() -> None:
    """Options up to Z have letters."""
    options = [f"text {number}" for number in range(26)]
    letters = [chr(65 + number) for number in range(26)]
    assert letters == [read_letter(f"Answer: {letter}", options).letter for letter in letters]


def test_without_options_every_letter_is_out_of_range() -> None:
    """No options, no credit."""
    assert read_letter("A", []).rule == "out_of_range:A"


def test_own_text_beats_an_equal_option() -> None:
    """Two options may have the same text; the letter that was given is the answer."""
    reading = read_letter("B. 4 J", ["4 J", "4  J", "9 J"])
    assert (reading.letter, reading.rule) == ("B", "letter_with_text")


def test_whole_text_of_another_option_beats_a_beginning() -> None:
    """The full text of C after the letter B is a conflict even when B begins the same way."""
    assert read_letter("B. blue", ["red", "blue sky", "blue"]).rule == "letter_text_conflict"


def test_option_that_is_itself_a_letter_is_text() -> None:
    """After its label the text of the option is no second letter."""
    reading = read_letter("B. C", ["vitamin", "C", "D"])
    assert (reading.letter, reading.rule) == ("B", "letter_with_text")


def test_option_list_with_another_line_between_is_no_echo() -> None:
    """Only labels that follow each other at once are an echo of the option list."""
    text = "A) red\n\nWhy not the others:\nB) is blue"
    assert read_letter(text, FOUR).letter == "A"


def test_chain_of_letters_is_bounded_and_several() -> None:
    """A line of a thousand letters is several letters, whatever they are."""
    assert read_letter("Answer: " + "A, B, " * 1000, FOUR).rule == "several_letters:AB"


@pytest.mark.parametrize(
    ("text", "letter", "rule"),
    [
        ("The answer is B.\n\nAnswer: C", "C", "last_line"),
        ("Option A: no. Option B: no.\n\n**Answer: D**\n```\n", "D", "last_line"),
        ("Option B, then\n\\[\n\\boxed{C}\n\\]", "C", "last_line"),
        ("Answer: C\n\nSo much for that.", "C", "anchored"),
        ("The answer is B, no, answer C", None, "several_letters:BC"),
        ("Answer: A\nOption B, option C", None, "several_letters:ABC"),
        ("Answer: A\nOption B is wrong", None, "no_letter"),
        ("Answer: A\nAnswer: J", None, "out_of_range:J"),
        ("C\nD", None, "several_letters:CD"),
        ("B", "B", "bare"),
    ],
)
def test_last_line_wins_after_thinking(text: str, letter: str | None, rule: str) -> None:
    """After thinking, the anchored letter of the last line with words beats earlier ones."""
    reading = read_letter(text, FOUR, last_line_wins=True)
    assert (letter, rule) == (reading.letter, reading.rule)
    _assert_explained(text, reading)


def test_letter_in_prose_is_no_answer() -> None:
    """mcq-01: the first letter of a word after "answer is" is no answer."""
    text = "The answer is Definitely the second one, so B."
    assert read_letter(text, TEN).letter is None


def test_seeming_article_gives_way_to_later_answer() -> None:
    """mcq-03: "Answer: A seems" is no answer, the explicit later one counts."""
    text = "Let me check. Answer: A seems tempting. After checking the units, Answer: C"
    assert read_letter(text, FOUR).letter == "C"


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: $B$", "B"),
        ("**Answer:** B", "B"),
        ("Answer: **B**", "B"),
        ("Answer: (B)", "B"),
        ("ANSWER: `B`", "B"),
        ("\\boxed{B}", "B"),
        ("\\boxed{\\text{C: blue}}", "C"),
        ("Answer:\nB", "B"),
        ("answer: b.", "B"),
        ("'B'", "B"),
    ],
)
def test_decoration_does_not_hide_the_letter(text: str, letter: str) -> None:
    """mcq-04: LaTeX and Markdown around a letter are peeled off."""
    assert letter == read_letter(text, FOUR).letter


def test_boxed_formula_does_not_beat_the_answer_line() -> None:
    """mcq-05: a box counts only when its content is a letter."""
    text = "So \\boxed{H \\ll E}.\n\n**Answer: D**"
    assert read_letter(text, FOUR).letter == "D"
    assert read_letter(text, TEN).letter == "D"


@pytest.mark.parametrize(
    ("text", "letter"),
    [("Ｂ", "B"), ("\u200bB", "B"), ("B\u00a0", "B"), ("В", "B"), ("Αnswer: C", "C")],
)
def test_lookalikes_and_invisible_marks_are_read(text: str, letter: str) -> None:
    """mcq-09: full-width letters, zero-width marks and twins by the stated rule."""
    assert letter == read_letter(text, FOUR).letter


def test_echo_of_the_options_is_no_answer() -> None:
    """mcq-10: lines of the option list are not answers, the answer line is."""
    text = "Question: which?\nA) red\nB) blue\nC) green\nD) grey\nAnswer: B"
    assert read_letter(text, FOUR).letter == "B"


def test_answer_needs_no_full_stop() -> None:
    """gpq-04: "The answer is C" counts with and without a full stop."""
    assert [read_letter(text, FOUR).letter for text in ("The answer is C", "The answer is C.")] == [
        "C",
        "C",
    ]


def test_visible_answer_after_thinking_is_read() -> None:
    """thk-01: with the reasoning taken away the visible answer counts."""
    assert read_letter("\nThe answer is C.", FOUR).letter == "C"


def test_stray_closing_tag_does_not_matter() -> None:
    """thk-03: a tag in the answer's text is only text."""
    assert read_letter("The answer is B. The tag </think> is only markup.", FOUR).letter == "B"


@pytest.mark.parametrize(("text", "letter"), [("B", "B"), ("B because the", None), ("", None)])
def test_cut_reply_is_read_as_any_other(text: str, letter: str | None) -> None:
    """trc-01: this module says what is seen; that a cut reply is wrong is the caller's rule."""
    assert letter == read_letter(text, FOUR).letter


@pytest.mark.parametrize("text", ["B \ud835", "\udc00B", "B\x00", "B\u2028", "\u202eB", "B\u0085"])
def test_broken_characters_do_no_harm(text: str) -> None:
    """log-01 and log-02: half a surrogate pair, NUL and odd line breaks hide no letter."""
    reading = read_letter(text, FOUR)
    assert (reading.letter, reading.rule) == ("B", "bare")
    assert reading.span == (text.index("B"), text.index("B") + 1)


def test_version_is_named() -> None:
    """The contract of a run records the version of the rules."""
    assert VERSION == "letter 1"
