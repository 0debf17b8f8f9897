"""Formulas: what is one and what is money, how it is set, and what is shown as its source."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core import formulas
from humanjudge.core.markdown import render
from tests.humanjudge.core.test_markdown import Seen


def shown(text):
    return " ".join(Seen(render(text)).text.split())


@pytest.mark.parametrize(
    "text, display",
    [
        ("so $x^2$ is", "inline"),
        ("$x$ is 5", "inline"),
        ("it is $x$", "inline"),
        ("the $n$th", "inline"),
        ("($x$), $y$.", "inline"),
        ("**$x$**", "inline"),
        ("- $x$", "inline"),
        ("| $x$ |\n|---|", "inline"),
        ("$f$-divergence", "inline"),
        (r"$5\%$ of them", "inline"),
        (r"$\text{if and only if } x$", "inline"),
        (r"so \(a = 1\) and", "inline"),
        (r"so \( a = 1 \) and", "inline"),
        ("$$x$$", "block"),
        ("so $$x$$ and", "block"),
        ("$$\nx\n$$", "block"),
        ("so\n$$\nx\n- y\n= z\n$$\nand", "block"),
        ("$$\nx\n$$.", "block"),
        (r"\[ x \]", "block"),
        ("so \\[\nx\n\\] and", "block"),
        ("1. a\n\n   \\[\n   x\n   \\]\n2. b", "block"),
        ("> \\[\n> x\n> - y\n> \\]", "block"),
        (r"\begin{equation} x = 1 \end{equation}", "block"),
        ("\\begin{align*}\nx &= 1 \\\\\ny &= 2\n\\end{align*}", "block"),
        ("\\[\\begin{aligned}\nx &= 1 \\\\\n y &= 2\n\\end{aligned}\\]", "block"),
        (r"$$\begin{cases} 1 & x > 0 \\ 0 & \text{else} \end{cases}$$", "block"),
        (r"$$\arg\max_x f(x) \hspace{0.5em} \operatorname*{argmin}$$", "block"),
        ("\\[ " + r"\frac{a_{1}}{b^{2}} + \sqrt{c} = " * 30 + "0 \\]", "block"),
        (r"\[ \boxed{\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}} \]", "block"),
    ],
)
def test_a_formula_is_set(text, display):
    html = render(text)
    assert html.count("<math ") >= 1
    assert f'<math display="{display}"' in html
    assert not {"$", "\\"} & set(Seen(html).text)


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and I have $10.",
        "between $5-$10",
        "US$5, CA$10 and $1,000.00",
        "$5/month or 10$",
        "$20,$30 or 40 $",
        "($5) and ($6)",
        "**$5** or **$6**",
        "5$, 10$ and 15$",
        "I paid $ 5 and $ 6",
        "$HOME/$PATH and from $HOME to $PATH",
        "$i<$n;$i++",
        "$a = $b + $c;",
        "`$x$` and `\\(y\\)`",
        "```\n$$x$$\n\\[y\\]\n```",
        "    $$x$$",
        "$$ and $$$",
        "only \\( one or \\[ other",
        r"\\[ x \\] and \\( y \\)",
        "$$\nx\n\ny\n$$",
        "\\begin{align} x",
    ],
)
def test_no_formula_and_nothing_of_it_is_lost(text):
    html = render(text)
    assert "<math" not in html
    plain = text.replace("**", "").replace("`", "")
    assert "".join(Seen(html).text.split()) == "".join(plain.split())


@pytest.mark.parametrize(
    "text",
    [
        r"$\unknown{x}$",
        r"$\frac{1}{$",
        r"\(\left( x\)",
        r"\[ x % a remark \]",
        r"\[ x \label{eq:1} \]",
        r"$\phantom{hidden}$",
        r"$\cancel{5}x$",
        r"$\quad$",
        r"$\color{white}{hidden}$",
        r"$\hspace{999em}x$",
        r"$\rule{99em}{99em}$",
        r"$\href{https://example.org}{x}$",
        r"$\unicode{x41}$",
        r"$\newcommand{\a}{b}\a$",
        r"$a & b$",
        r"\begin{itemize} \item one \end{itemize}",
        "$" + "x" * (formulas.LONGEST + 1) + "$",
    ],
)
def test_what_cannot_be_set_is_shown_with_its_delimiters(text):
    assert "<math" not in render(text)
    assert shown(text) == text


def test_no_number_is_added():
    assert shown("\\begin{align}\nx &= y\n\\end{align}") == "x=y"


@pytest.mark.parametrize(
    "text",
    [
        "$" + "{" * 10_000 + "}" * 10_000 + "$",
        "$$" + "{" * 990 + "}" * 990 + "$$",
        "\\(" * 100_000,
        "$" * 100_000,
        "$a " * 100_000,
        "\\begin{align}\n" * 10_000,
        "\\begin{align}\n\n" * 10_000,
        "$x" + "^{a" * 600 + "}" * 600 + "$",
        "$" + "\\sqrt" * 390 + " x$",
        "$" + "\\left(" * 300 + "$",
        "$" + "\\frac" * 390 + "$",
        "$" + "a\\over " * 240 + "b$",
        "$\\newcommand{\\a}{\\b\\b\\b\\b}\\newcommand{\\b}{\\c\\c\\c\\c}\\newcommand{\\c}{\\a\\a}\\a$",
        "$\\def\\a{\\a\\a}\\a$",
        "".join(f"$$ {i} {'x' * 1980} $$\n\n" for i in range(200)),
        "".join(f"$\\alpha_{{{i}}}$ " for i in range(10_000)),
    ],
    ids=lambda text: f"{text[:12]!r}, {len(text)}",
)
def test_a_hostile_formula_takes_no_time(text):
    start = time.process_time()
    render(text)
    assert time.process_time() - start < 3


@given(st.text(st.sampled_from("x1{}^_\\&%$ '()[]|.~"), max_size=60) | st.text(max_size=40))
def test_whatever_is_written_is_set_or_left(latex):
    html = formulas.mathml(latex, is_display=True)
    assert html is None or html.startswith("<math ")
