"""What columns are taken for, in the languages of the people who bring files, and by values."""

import pytest

from judge_eval.imports.guesses import facts_of
from judge_eval.imports.mapping import guessed_roles
from judge_eval.imports.row_models import PAIRS

LONG = ["A sentence of several words.", "Another one of them."]
PICKS = ["A", "B"]


def roles_of(*columns):
    """Return the roles of long texts and, behind them, of two columns of A and B."""
    texts, picks = columns[:-2], columns[-2:]
    facts = dict.fromkeys(texts, facts_of(LONG)) | dict.fromkeys(picks, facts_of(PICKS))
    return list(guessed_roles(facts, PAIRS).values())


ALL = ["prompt", "output_a", "output_b", "vote", "verdict"]


@pytest.mark.parametrize(
    "columns",
    [
        ("Frage", "AntwortA", "AntwortB", "Besser", "Richter"),
        ("Question", "Response A", "Response B", "Winner", "Judge"),
        ("Pregunta", "Respuesta 1", "Respuesta 2", "Mejor", "Juez"),
        ("Question", "Réponse A", "Réponse B", "Meilleur", "Juge"),
        ("Domanda", "Risposta A", "Risposta B", "Migliore", "Giudice"),
        ("Pergunta", "Resposta A", "Resposta B", "Melhor", "Juiz"),
        ("问题", "回答A", "回答B", "更好", "裁判"),
        ("질문", "답변A", "답변B", "선택", "심판"),
    ],
)
def test_columns_are_known_in_many_languages(columns):
    assert roles_of(*columns) == ALL


def test_columns_of_any_name_are_known_by_their_values():
    assert roles_of("c1", "c2", "c3", "c4", "c5") == ALL
    # Of four texts nobody can say which are compared.
    assert roles_of("c1", "c2", "c3", "c4", "c5", "c6") == ["", "", "", "", "vote", "verdict"]


def test_a_number_names_a_pair_only_where_no_two_rows_have_the_same():
    facts = {"Frage": facts_of(LONG), "AntwortA": facts_of(LONG), "AntwortB": facts_of(LONG)}
    assert guessed_roles(facts | {"Nr": facts_of(["1", "2"])}, PAIRS)["Nr"] == "pair"
    assert guessed_roles(facts | {"Nr": facts_of(["1", "1"])}, PAIRS)["Nr"] == ""
