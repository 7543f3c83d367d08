"""Each oddity of the IFEval reference that the grader keeps, one test named after what it does."""

import pytest

from qualeval.graders.ifeval import InstructionVerdict, grade

LESS, LEAST = "less than", "at least"


def verdict(instruction: str, reply: str | None, **kwargs: object) -> InstructionVerdict:
    return grade(reply, [instruction], [kwargs]).instructions[0]


def followed(instruction: str, reply: str | None, **kwargs: object) -> bool:
    return verdict(instruction, reply, **kwargs).strict


def exists(reply: str, *keywords: str) -> bool:
    return followed("keywords:existence", reply, keywords=list(keywords))


def test_keyword_is_found_inside_another_word_and_in_any_case() -> None:
    assert exists("We RESTART now.", "art")


def test_every_keyword_must_be_found() -> None:
    assert not exists("only tea here", "tea", "milk")
    found = verdict("keywords:existence", "only tea", keywords=["tea", "milk"])
    assert found.why == "missing 'milk'"


def test_keyword_is_a_pattern_not_a_text() -> None:
    """ife-09: the unescaped keyword is searched."""
    assert not exists("We plot f(x) against time.", "f(x)")
    assert exists("We plot fx.", "f(x)")
    assert exists("page 325", "3.5")


@pytest.mark.parametrize("keyword", ["a[", "(", "a{99999999999999}", "(?L)a", "(" * 5000])
def test_keyword_that_is_no_pattern_is_not_followed_and_says_so(keyword: str) -> None:
    """ife-09: the reference stops with an error there."""
    for found in (
        verdict("keywords:existence", "a[ (", keywords=[keyword]),
        verdict("keywords:frequency", "a[ (", keyword=keyword, frequency=9, relation=LESS),
        verdict("keywords:forbidden_words", "a[ (", forbidden_words=[keyword]),
        verdict("detectable_content:postscript", "a[ (", postscript_marker=keyword),
        verdict(
            "detectable_format:multiple_sections", "( 1", section_spliter=keyword, num_sections=0
        ),
    ):
        assert (found.strict, found.loose) == (False, False)
        assert "not a valid pattern" in found.why


def test_keyword_with_nested_brackets_is_searched_without_a_warning() -> None:
    assert exists("a [b", "[[]b")


def test_keyword_count_includes_longer_words() -> None:
    reply = "war forward toward"
    kwargs = {"keyword": " war ", "relation": LEAST}
    assert followed("keywords:frequency", reply, frequency=3, **kwargs)
    assert not followed("keywords:frequency", reply, frequency=4, **kwargs)


def test_less_than_excludes_the_number_itself() -> None:
    kwargs = {"keyword": "tea", "relation": LESS}
    assert not followed("keywords:frequency", "tea tea", frequency=2, **kwargs)
    assert followed("keywords:frequency", "tea tea", frequency=3, **kwargs)


def test_threshold_zero_is_kept() -> None:
    """ife-02: ports that drop falsy kwargs draw a threshold here."""
    kwargs = {"keyword": "cat", "frequency": 0, "relation": LEAST}
    assert followed("keywords:frequency", "A dog sleeps.", **kwargs)


def test_false_and_empty_text_are_kept_as_values() -> None:
    kwargs = {"keyword": "cat", "frequency": False, "relation": LEAST}
    assert followed("keywords:frequency", "A dog sleeps.", **kwargs)
    assert followed("startend:end_checker", "anything", end_phrase="")


def test_forbidden_word_is_bounded_so_that_its_plural_is_allowed() -> None:
    assert followed("keywords:forbidden_words", "The arts.", forbidden_words=["art"])
    assert not followed("keywords:forbidden_words", "The ART.", forbidden_words=["art", "x"])


@pytest.mark.parametrize("letter", ["a", "A"])
def test_letter_is_counted_in_any_case(letter: str) -> None:
    kwargs = {"letter": letter, "let_frequency": 3, "let_relation": LEAST}
    assert followed("keywords:letter_frequency", "Aha, a", **kwargs)
    assert not followed("keywords:letter_frequency", "Aha", **kwargs)


def test_character_that_is_no_letter_is_counted_itself() -> None:
    """ife-03: the reference draws a letter instead (keys 1122 and 1129)."""
    kwargs = {"letter": "#", "let_frequency": 3, "let_relation": LEAST}
    found = {
        verdict("keywords:letter_frequency", "#tea #milk #bun zzz", **kwargs) for _ in "x" * 40
    }
    (only,) = found
    assert only.strict
    assert only.why == "found 3 times '#', wanted at least 3"
    assert not followed("keywords:letter_frequency", "#tea #milk zzz", **kwargs)


@pytest.mark.parametrize("reply", ["12345 !!!", "42", "☺☺☺"])
def test_text_without_any_language_counts_as_followed(reply: str) -> None:
    """ife-05: the detector raises there."""
    assert followed("language:response_language", reply, language="de")


def test_language_is_the_likeliest_one() -> None:
    reply = "Das Wetter ist heute schön, und wir gehen am Nachmittag spazieren."
    assert followed("language:response_language", reply, language="de")
    found = verdict("language:response_language", reply, language="fr")
    assert not found.loose
    assert found.why == "language looks like de, wanted fr"


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        ("Dr. Vale left. He ran.", 2),
        ("Tea is hot.Milk is cold.Buns are warm.", 1),
        ("Read pages A through L. Then stop.", 1),
        ("Wait... what? Yes!", 2),
        ("お茶は熱い。牛乳は冷たい。", 1),
        ("“Stop!” she said. “Now.” He ran.", 2),
        ("Wow!!!", 2),
        ("Wait . . . what?", 4),
    ],
)
def test_sentences_are_those_of_english_punkt_with_the_old_quote_rule(
    reply: str, count: int
) -> None:
    """ife-17: a home-made splitter or a newer library counts otherwise."""
    kind = "length_constraints:number_sentences"
    assert followed(kind, reply, num_sentences=count, relation=LEAST)
    assert not followed(kind, reply, num_sentences=count + 1, relation=LEAST)


def paragraphs(reply: str, count: int) -> bool:
    return followed("length_constraints:number_paragraphs", reply, num_paragraphs=count)


def test_three_stars_divide_paragraphs_and_spaced_stars_do_not() -> None:
    """ife-15"""
    assert paragraphs("First.\n***\nSecond.", 2)
    assert not paragraphs("First.\n* * *\nSecond.", 2)
    assert not paragraphs("First.\n\nSecond.", 2)


def test_bold_italic_text_divides_paragraphs() -> None:
    """ife-15"""
    assert not paragraphs("First ***very*** good.\n***\nSecond.", 2)
    assert paragraphs("First ***very*** good.\n***\nSecond.", 4)


def test_divider_at_either_end_makes_no_paragraph() -> None:
    assert paragraphs("***\nFirst.\n***\nSecond.\n***", 2)


def test_six_stars_leave_a_blank_paragraph_and_fail() -> None:
    assert not paragraphs("First.\n******\nSecond.", 2)
    assert not paragraphs("First.\n******\nSecond.", 3)


def test_words_are_runs_of_word_characters() -> None:
    kind = "length_constraints:number_words"
    assert followed(kind, "don't re-do it", num_words=5, relation=LEAST)
    assert not followed(kind, "don't re-do it", num_words=5, relation=LESS)
    assert not followed(kind, "snake_case", num_words=2, relation=LEAST)


def nth(reply: str, count: int, place: int, word: str) -> InstructionVerdict:
    return verdict(
        "length_constraints:nth_paragraph_first_word",
        reply,
        num_paragraphs=count,
        nth_paragraph=place,
        first_word=word,
    )


def test_blank_lines_before_the_first_paragraph_fail_strictly_only() -> None:
    """ife-07: nothing may strip the reply before it is graded."""
    reply = "\n\nMorning came quietly.\n\nLater we walked home."
    found = nth(reply, 2, 1, "morning")
    assert (found.strict, found.loose) == (False, True)
    assert nth(reply.lstrip(), 2, 1, "morning").strict


def test_blank_line_more_moves_the_place_of_the_paragraph_not_the_count() -> None:
    assert not nth("One here.\n\n\n\nTwo here.", 2, 2, "two").strict
    assert nth("One here.\n\nTwo here.", 2, 2, "Two").strict


def test_place_beyond_the_paragraphs_of_the_reply_fails() -> None:
    assert nth("One.", 2, 2, "one").why == "found 1 paragraphs, none at place 2"


def test_right_word_with_another_number_of_paragraphs_fails() -> None:
    assert not nth("One.\n\nTwo.\n\nThree.", 2, 2, "two").strict


@pytest.mark.parametrize(
    ("start", "right"),
    [
        ("weekend", True),
        ("\"weekend's", True),
        ("'\"weekend!?", True),
        ("**Weekend**", False),
        ("weekend:", False),
        ("\"'weekend", False),
    ],
)
def test_first_word_loses_quotes_and_sentence_marks_only(start: str, right: bool) -> None:
    assert right == nth(f"{start} plans", 1, 1, "weekend").strict


def test_first_word_is_lowered_letter_by_letter() -> None:
    """The whole word in small letters would end in another sigma."""
    assert nth("ΟΔΟΣ", 1, 1, "οδοσ").strict
    assert not nth("ΟΔΟΣ", 1, 1, "ΟΔΟΣ").strict


def test_anything_in_brackets_on_one_line_is_a_placeholder() -> None:
    kind = "detectable_content:number_placeholders"
    reply = "[name] [ ] [1] [link](x) [a [b] c] [not\nclosed]"
    assert followed(kind, reply, num_placeholders=5)
    assert not followed(kind, reply, num_placeholders=6)


@pytest.mark.parametrize(
    ("marker", "reply", "right"),
    [
        ("P.S.", "Bye.\nP.S. Write soon", True),
        ("P.S.", "p. s. write", True),
        ("P.S.", "P.S write", False),
        ("P.S.", "the e.p.s. of a firm", True),
        ("P.P.S", "p.p. s", True),
        ("P.P.S", "P.S.", False),
        ("PS", "see the ps: bye", True),
        (" PS ", "nothing", False),
    ],
)
def test_postscript_may_stand_anywhere(marker: str, reply: str, right: bool) -> None:
    assert right == followed("detectable_content:postscript", reply, postscript_marker=marker)


def bullets(reply: str) -> str:
    return verdict("detectable_format:number_bullet_lists", reply, num_bullets=99).why


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        ("* a\n  * b\n- c", 3),
        ("---", 1),
        ("-5 degrees", 1),
        ("1. a\n• b", 0),
        ("**bold** start", 0),
        ("*\n* eaten", 1),
        ("*italic* start", 1),
        ("\n\n   \n\t* late", 1),
    ],
)
def test_bullet_is_a_line_that_starts_with_one_star_or_a_dash(reply: str, count: int) -> None:
    assert f"found {count} bullet points, wanted 99" == bullets(reply)


def test_number_of_bullets_is_exact() -> None:
    kind = "detectable_format:number_bullet_lists"
    assert followed(kind, "* a\n* b", num_bullets=2)
    assert not followed(kind, "* a\n* b\n* c", num_bullets=2)


def test_fixed_answer_counts_anywhere_but_in_its_own_case() -> None:
    kind = "detectable_format:constrained_response"
    assert followed(kind, "Well. My answer is yes. Or: My answer is no.")
    assert not followed(kind, "my answer is yes.")


@pytest.mark.parametrize(
    ("reply", "count"),
    [("*a* and *b*", 2), ("**a**", 1), ("***x***", 2), ("2 * 3 * 4", 1), ("* *", 0), ("*a\nb*", 0)],
)
def test_highlights_are_counted_with_one_and_with_two_stars(reply: str, count: int) -> None:
    kind = "detectable_format:number_highlighted_sections"
    assert (
        f"found {count} highlights, wanted at least 9" == verdict(kind, reply, num_highlights=9).why
    )


def test_section_is_the_splitter_and_digits_also_in_prose() -> None:
    kind = "detectable_format:multiple_sections"
    kwargs = {"section_spliter": " Section ", "num_sections": 2}
    assert followed(kind, "Section 1 says: see Section2.", **kwargs)
    assert followed(kind, "Section 1 Section 2 Section 3", **kwargs)
    assert not followed(kind, "Section I\nSection II", **kwargs)
    assert not followed(kind, "SECTION 1\nSECTION 2", **kwargs)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ('```json\n{"a": 1}\n```', True),
        ('```json\n{"a": 1}\n```\nHope this helps!', False),
        ('Here:\n```json\n{"a": 1}\n```', False),
        ('```jsonc\n{"a": 1}\n```', False),
        ("42", True),
        ("NaN", True),
        ('{"a": 1,}', False),
        ('```json\r\n{"a": 1}\r\n```', True),
        ("```JSON\n[]", True),
        ("9" * 5000, False),
        ("[" * 100_000 + "]" * 100_000, False),
    ],
)
def test_json_is_read_after_one_fence_is_taken_off(reply: str, right: bool) -> None:
    """ife-13"""
    assert right == followed("detectable_format:json_format", reply)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("<<joy>>", True),
        ("if a << 1 and b >> 2", True),
        ("<< >>", False),
        ("<<>>", False),
        ("<<<>>>", False),
        ("<<a\nb>>", False),
        (">> a <<", False),
        ("<< >> x >>", True),
    ],
)
def test_title_is_anything_between_double_angles_on_one_line(reply: str, right: bool) -> None:
    assert right == followed("detectable_format:title", reply)


def test_repeated_request_needs_no_answer_after_it_and_no_case() -> None:
    kind = "combination:repeat_prompt"
    assert followed(kind, "  WRITE a poem", prompt_to_repeat="Write a poem ")
    assert not followed(kind, "Sure: write a poem", prompt_to_repeat="Write a poem")


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("First idea.\n******\nSecond idea.", True),
        ("First idea.\n*******\nSecond idea.", True),
        ("First idea.\n************\nSecond idea.", False),
        ("******\nFirst idea.\n******\nSecond idea.\n******", True),
        ("Same.\n******\nSame.", False),
        ("Only one.", False),
        ("a******b******c", False),
    ],
)
def test_two_responses_stand_between_six_stars(reply: str, right: bool) -> None:
    """ife-14"""
    assert right == followed("combination:two_responses", reply)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("Go in peace!", True),
        ('"Go in PEACE!"', True),
        ("warpeace!", True),
        ("**Peace!**", False),
        ("Peace!.", False),
    ],
)
def test_end_phrase_is_compared_without_outer_quotes_only(reply: str, right: bool) -> None:
    assert right == followed("startend:end_checker", reply, end_phrase=" Peace! ")


@pytest.mark.parametrize(
    ("reply", "right"),
    [('"a"', True), ('"a" and "b"', True), ('"', False), ("“a”", False), (' "a"\n', True)],
)
def test_quotation_is_first_and_last_ascii_quote(reply: str, right: bool) -> None:
    assert right == followed("startend:quotation", reply)


@pytest.mark.parametrize("mark", ["，", "、", ";"])
def test_only_the_ascii_comma_is_a_comma(mark: str) -> None:
    assert followed("punctuation:no_comma", f"a{mark} b")
    assert not followed("punctuation:no_comma", "1,000")


def test_short_capital_text_is_misread_as_another_language() -> None:
    """The detector skips words all in capitals but for their first letter."""
    found = verdict("change_case:english_capital", "HELLO")
    assert not found.strict
    assert found.why == "all in capitals; language looks like vi, wanted en"
    assert "cy" in verdict("change_case:english_capital", "YES.").why
    assert "tl" in verdict("change_case:english_lowercase", "no").why


def test_case_is_judged_before_the_language() -> None:
    assert verdict("change_case:english_capital", "Hello").why == "not all in capitals"
    assert verdict("change_case:english_lowercase", "Hello").why == "not all in small letters"
    assert not followed("change_case:english_capital", "12345 !!!")


def test_english_in_one_case_is_followed() -> None:
    text = "we went to the market in the morning and bought bread, cheese and apples."
    assert followed("change_case:english_lowercase", text)
    assert followed("change_case:english_capital", text.upper() + " THIS IS THE END OF IT, OK?")


def test_capital_words_count_single_letters_and_both_halves_of_a_contraction() -> None:
    kind = "change_case:capital_word_frequency"
    reply = "I saw A 3D film in the U.S. and DON'T know"
    found = verdict(kind, reply, capital_frequency=7, capital_relation=LEAST)
    assert found.why == "found 6 words in capitals, wanted at least 7"
    assert not found.loose
    assert followed(kind, reply, capital_frequency=7, capital_relation=LESS)
