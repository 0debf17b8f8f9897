"""What a column may be: by its name, in the languages that are used most, and by its values."""

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import product
from typing import Final
from unicodedata import combining, normalize

from pydantic import BaseModel

from judge_eval.imports import fields

# So long, on average, that it is more than a word or a name.
LONG_TEXT: Final = 12
_SIDES: Final = {"a": "a 1 left links izquierda gauche", "b": "b 2 right rechts derecha droite"}
# What is compared, and what wrote it: a side stands before or behind.
_SIDED: Final = {
    "output": "response answer completion output reply conversation conv messages antwort respuesta"
    " réponse risposta resposta antwoord svar odpowiedź ответ 回答 答案 응답 답변 cevap",
    "generator": "model system generator modell modelo modèle modello модель 模型 モデル 모델",
}
_WORDS: Final = {
    "prompt": "question instruction query user_prompt user_input opening_prompt input inputs"
    " frage aufgabe eingabe anfrage pregunta domanda pergunta vraag fråga spørgsmål pytanie"
    " вопрос 问题 質問 질문 soru",
    "output": "response answer completion model_output model_response reply antwort respuesta"
    " réponse risposta resposta antwoord svar odpowiedź ответ 回答 答案 답변 cevap",
    "generator": "model_name model_id model system modell modelo modèle modello модель 模型 모델",
    "vote": "winner preference preferred human_preference human_winner human_label human_choice"
    " choice better best besser bessere gewinner wahl mejor ganador elección voto meilleur gagnant"
    " choix migliore vincitore scelta melhor vencedor escolha beter winnaar keuze lepsza lepszy"
    " лучше выбор 更好 选择 勝者 선택",
    "voter": "annotator annotator_id rater rater_id user user_id worker_id evaluator person"
    " reviewer bewerter bewerterin teilnehmer nutzer anotador evaluador usuario annotateur"
    " évaluateur utilisateur annotatore valutatore utente avaliador beoordelaar"
    " оценщик 标注者 評価者 평가자",
    "verdict": "judge_winner llm_winner judge_label judge_choice judge_preference judgment"
    " judgement urteil veredicto veredito verdetto",
    "judge": "judge_model judge_name grader richter richterin juez juge giudice juiz rechter sędzia"
    " судья 裁判 심판 hakem",
    "feedback": "reason reasoning rationale explanation begründung grund razón raison motivo",
    "item": "span span_id example_id sample_id record_id utterance_id item_id",
    "voted_at": "timestamp created_at annotated_at zeitpunkt",
}
_NUMBERS: Final = "nr no id nummer number num número numéro index idx key no_ #"
# What holds the verdicts of several judges by their names, and what such a verdict is called.
_OF_JUDGES: Final = ("scores", "evaluators", "metrics", "evaluations")
_SAYS: Final = ("label", "value", "score", "verdict", "rating", "grade")
# Words for a side that tell it alone; a number may be anything.
_SIDE_WORDS: Final = ("left", "right")


class ColumnFacts(BaseModel):
    """What the first values of a column have in common."""

    filled: int = 0
    distinct: int = 0
    length: float = 0
    # Each is one of the choices between two outputs.
    is_choice: bool = False
    # Each is a number from 0 to 1, and some lie between.
    is_share: bool = False


@lru_cache(maxsize=1000)
def bare_name(column: str) -> str:
    """Return a name in small letters without accents, its words joined by underscores.

    Examples
    --------
    >>> bare_name("AntwortA"), bare_name("Réponse 2"), bare_name("human-label")
    ('antwort_a', 'reponse_2', 'human_label')
    """
    letters = (entry for entry in normalize("NFKD", column[:200]) if not combining(entry))
    words = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z\d])", "_", "".join(letters))
    return re.sub(r"[\W_]+", "_", words.lower()).strip("_") or column


def _meanings() -> Iterable[tuple[str, str]]:
    for stem, words in _SIDED.items():
        for (side, names), word in product(_SIDES.items(), words.split()):
            for name in names.split():
                orders = (f"{word}_{name}", f"{name}_{word}")
                for spelled in (*orders, f"{word}_model_{name}", f"model_{name}_{word}"):
                    yield bare_name(spelled), f"{stem}_{side}"
    for field, words in _WORDS.items():
        for word in words.split():
            yield bare_name(word), field


_FIELD_BY_NAME: Final = dict(_meanings())


def field_called(name: str) -> str:
    """Return the field of ours that a column may be by its name; empty where none is known.

    Examples
    --------
    >>> field_called("Frage"), field_called("AntwortB"), field_called("Winner"), field_called("x")
    ('prompt', 'output_b', 'vote', '')
    """
    return _FIELD_BY_NAME.get(bare_name(name), "")


def facts_of(values: Collection[object]) -> ColumnFacts:
    """Tell what the values of a column have in common.

    Examples
    --------
    >>> facts_of(["A", "B", "left", None]).is_choice, facts_of(["A", "x"]).is_choice
    (True, False)
    """
    texts = [str(value) for value in values if value not in (None, "")]
    words = {text[:100] for text in texts}
    return ColumnFacts(
        filled=len(texts),
        distinct=len(words),
        length=sum(map(len, texts)) / max(len(texts), 1),
        is_choice=bool(words) and all(map(_is_choice, words)),
        is_share=all(map(_is_share, words)) and not words <= {"0", "1", "0.0", "1.0"},
    )


def _is_choice(word: str) -> bool:
    with suppress(fields.Unfit):
        return word.strip().lower() in _SIDE_WORDS or fields.choice(word) is not None
    return False


def _is_share(word: str) -> bool:
    with suppress(fields.Unfit):
        return fields.share(word) is not None
    return False


def add_by_values(
    roles: Mapping[str, str], facts: Mapping[str, ColumnFacts], name: str
) -> dict[str, str]:
    """Return the roles of the columns of pairs, where names do not say them by the values.

    A column named for a judge that holds A and B holds its verdicts; two long texts are the
    outputs; `name` is the field that names a pair.

    Examples
    --------
    >>> long, pick = facts_of(["A text of some words."]), facts_of(["A", "B"])
    >>> columns = {"x": long, "y": long, "z": long, "Richter": pick, "q": pick}
    >>> add_by_values(dict.fromkeys(columns, "") | {"Richter": "judge"}, columns, "pair")
    {'x': 'prompt', 'y': 'output_a', 'z': 'output_b', 'Richter': 'verdict', 'q': 'vote'}
    """
    roles, answers_by_person = dict(roles), {"voter": "vote", "judge": "verdict"}
    for column, role in roles.items():
        answer = answers_by_person.get(role)
        if answer and facts[column].is_choice and answer not in roles.values():
            roles[column] = answer
    _add_texts(roles, facts)
    for column in [entry for entry, role in roles.items() if not role and facts[entry].is_choice]:
        answers = [entry for entry in ("vote", "verdict") if entry not in roles.values()]
        roles[column] = answers[0] if answers else ""
    if name not in roles.values():
        numbers = {*map(bare_name, _NUMBERS.split())}
        unique = [
            entry
            for entry, role in roles.items()
            if not role
            and bare_name(entry) in numbers
            and 1 < facts[entry].filled == facts[entry].distinct
            and facts[entry].length <= LONG_TEXT * 4
        ]
        roles |= dict.fromkeys(unique[:1], name)
    return roles


def add_by_place(roles: Mapping[str, str], judges: str) -> dict[str, str]:
    """Return the roles of paths into single items, where their places say what their names do not.

    `judges` is the role of a verdict whose judge its place names. What a person is beside says a
    vote, unless a judge is there too.

    Examples
    --------
    >>> add_by_place({"scores.Tone": "", 'scores."Human review"': "", "score": "score"}, "judges")
    {'scores.Tone': 'judges', 'scores."Human review"': 'vote', 'score': 'score'}
    >>> add_by_place({"user_id": "voter", "score": "score"}, "judges")
    {'user_id': 'voter', 'score': 'vote'}
    """
    roles = dict(roles)
    for path in [path for path, role in roles.items() if not role]:
        first, _, rest = path.partition(".")
        if rest and "[" not in path and first in _OF_JUDGES:
            is_human = "human" in bare_name(rest)
            if not is_human:
                roles[path] = judges
            elif "vote" not in roles.values():
                roles[path] = "vote"
    taken_roles = {*roles.values()}
    if "voter" in taken_roles and not taken_roles & {"vote", "verdict", "judge"}:
        named = (
            entry
            for entry, role in roles.items()
            if role in ("", "score") and bare_name(entry) in _SAYS
        )
        roles |= dict.fromkeys([*named][:1], "vote")
    return roles


def judge_at(path: str) -> str:
    """Return what a judge is called whose verdict stands at a path.

    Examples
    --------
    >>> judge_at("evaluators.helpfulness.label"), judge_at('scores."Human review"'), judge_at("gpt")
    ('helpfulness', 'Human review', 'gpt')
    """
    first, *steps = re.findall(r'"[^"]*"|[^.]+', path) or [path]
    while len(steps) > 1 and (steps[-1] in _SAYS or steps[-1].endswith("output")):
        steps.pop()
    name: str = steps[-1] if steps else first
    return name.strip('"')


def _add_texts(roles: dict[str, str], facts: Mapping[str, ColumnFacts]) -> None:
    """Take the last two long texts for the outputs where none is known, and one before for the
    prompt.
    """
    taken_roles = {*roles.values()}
    if taken_roles & {"output_a", "output_b"}:
        return
    texts = [
        entry
        for entry, role in roles.items()
        if not role and facts[entry].length >= LONG_TEXT and not facts[entry].is_choice
    ]
    has_prompt = "prompt" in taken_roles
    if not 2 <= len(texts) <= 3 - has_prompt:
        return  # of so many nobody can say which
    text_roles = ("output_a", "output_b") if len(texts) == 2 else ("prompt", "output_a", "output_b")
    roles.update(zip(texts, text_roles, strict=True))
