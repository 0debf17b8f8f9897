"""A model's text as HTML: only the allowed tags, no script, no style, no request."""

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.core import formulas
from humanjudge.core.markdown import render, render_line, source, with_source

TAGS = formulas.TAGS | set(
    "a p br hr em strong s code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 "
    "table thead tbody tr th td".split()
)
ATTRIBUTES = {("a", "href"), ("a", "rel"), ("a", "title"), ("ol", "start"), ("li", "value")}
ATTACKS = [
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$$\\mbox{</math><script>alert(1)</script>}$$",
    "\\(\\href{javascript:alert(1)}{x}\\)",
    "$\\unicode{x3c}script\\unicode{x3e}$",
    "$\\text{&lt;img src onerror=alert(1)&gt;}$",
    "$\\text{&#x3c;img src onerror=alert(1)&#x3e;}$",
    "$\\style{position:fixed}{x}\\class{primary}{y}$",
    "$\\color{red;background:url(//evil.example)}x$",
    "\\[\\operatorname{<svg/onload=alert(1)>}\\]",
    "\\begin{<script>}alert(1)\\end{<script>}",
    "\\begin{matrix}\\text{</mtd><style><img src onerror=alert(1)>}\\end{matrix}",
    "<math><mtext><table><mglyph><style><!--</style><i title='--&gt;&lt;img onerror=alert(1)&gt;'>",
    "<math><annotation-xml encoding='text/html'><img src onerror=alert(1)></annotation-xml></math>",
    "<math><mi><malignmark><script>alert(1)</script></malignmark></mi></math>",
    "<math href=javascript:alert(1)><maction xlink:href=javascript:alert(1)>x",
    "$\\text{<mglyph><svg><mtext><style><path id='</style><img onerror=alert(1) src>'>}$",
    "$\\verb|<script>alert(1)</script>|$",
    "$\\tag{<img src=x onerror=alert(1)>}$",
    "[$\\text{x}$](javascript:alert(1))",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "<p style='position:fixed'>x</p>",
    "<style>*{display:none}</style>",
    "<math><mtext></table></math><img src onerror=alert(1)>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<form action=/logout><button>x</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example>",
    "<object data=//evil.example></object>",
    "<!--<img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<<script>script>alert(1)<</script>/script>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox)",
    "[x](file:///etc/passwd)",
    "[x][1]\n\n[1]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "![x](http://evil.example/pixel.png)",
    "![x][1]\n\n[1]: http://evil.example/pixel.png",
    "[![x](http://evil.example/pixel.png)](http://a.example)",
    '[x](http://a.example "onmouseover=alert(1)")',
    '[x](http://a.example"onmouseover="alert(1))',
    "```html onload=alert(1)\n<script>alert(1)</script>\n```",
    "`<img src=x onerror=alert(1)>`",
    "| <script>alert(1)</script> |\n|---|\n| <img src=x> |",
    "# <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#x3C;script&#x3E;alert(1)&#x3C;/script&#x3E;",
    "\u202e<script>alert(1)</script>",
]
pieces = st.lists(
    st.sampled_from(ATTACKS) | st.sampled_from(list("[](){}<>!`*_#|-&;:\"'\\\n\t $")) | st.text(),
    max_size=12,
).map("".join)


class Seen(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.text += data

    @property
    def written(self):
        """What is read: the text, and the numbers of a list."""
        return self.text + "".join(value for _, name, value in self.attributes if name == "value")


def assert_safe(html):
    seen = Seen(html)
    assert seen.tags <= TAGS
    for tag, name, value in seen.attributes:
        if name == "dir":
            assert value in ("auto", "ltr", "rtl")
            continue
        assert (tag, name) in ATTRIBUTES or name in formulas.ATTRIBUTES.get(tag, ())
        if name == "href" and re.match(r"\s*[a-z][a-z0-9+.-]*:", value or "", re.IGNORECASE):
            assert re.match(r"https?:", value)


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_come_to_nothing(attack):
    assert_safe(render(attack))


@given(pieces)
def test_whatever_is_written_is_safe(text):
    assert_safe(render(text))


def test_what_was_written_as_html_is_shown_as_text():
    assert "&lt;script&gt;" in render("<script>alert(1)</script>")


def test_markdown_is_rendered():
    html = render("# Title\n\n**bold** ~~old~~ `code`\n\n3. three\n4. four\n\n| a |\n|---|\n| b |")
    for part in (
        '<h1 dir="auto">Title</h1>',
        "<strong>bold</strong> <s>old</s>",
        '<code dir="ltr">code</code>',
        '<li dir="auto" value="3">three',
        '<td dir="auto">b</td>',
    ):
        assert part in html


def test_tasks_have_their_boxes():
    text = Seen(render("- [x] done\n- [ ] open\n- [X] Done\n\n[x] no task, `[x] nor this`")).text
    assert text.split() == "☑ done ☐ open ☑ Done [x] no task, [x] nor this".split()


def test_items_have_the_numbers_that_were_written():
    html = render("1. a\n1. b\n7. c")
    assert re.findall(r'value="(\d)"', html) == ["1", "1", "7"]


# --- nothing that was written is missing --------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "\\_not\\_ \\*these\\* \\# \\\\ \\[ \\( \\] \\) \\$5 \\\nend \\",
        "&lt;b&gt; &amp; &nbsp; &#65;",
        "![pic](https://example.org/x.png)",
        '![a *b*](https://example.org/x.png "title")',
        "[1]: https://example.org (not a hidden word)\n\n[x][1] ![x][1]",
        "<https://example.org/%41>",
        "<!-- said to nobody -->\n\n<details>hidden</details>",
        "| a |\n|---|\n| b | beyond |",
        "| a |\n|---|\n| \\|x\\| |",
        ">" * 30 + " deep",
        "- " * 30 + "deep",
        "\x0b\x1b[31mred\x7f \u202eback \u200bzero",
    ],
)
def test_it_is_shown_as_it_was_written(text):
    shown = Seen(render(text)).text
    assert "".join(shown.split()) == "".join(text.split())


words = st.text(st.characters(categories=("L", "N", "P", "S", "M")), max_size=8)
marks = st.sampled_from(
    [*"*_~`#>|\\-+=!&;:^/ \n\t$", "\n\n", "**", "~~", "- ", "1. ", "7) ", "> ", "|-|", "    "]
)
# Marks hide a word of their own: the language of a block of code, where a link leads, a ticked box.
HIDING = re.compile(r"```|~~~|\]\(|\[[xX]\]")


@given(st.lists(words | marks, max_size=20).map("".join))
def test_no_letter_is_lost_and_no_backslash_is_eaten(text):
    if HIDING.search(text):
        return
    html = render(text)
    written = Seen(html).written
    if "<math" not in html:
        assert Counter(text)["\\"] == Counter(written)["\\"]
    assert formulas._letters(formulas._COMMANDS.sub(" ", text)) <= formulas._letters(written)


def test_more_than_a_language_beside_a_fence_is_shown():
    assert "py" not in Seen(render("```py\nx\n```")).text
    assert Seen(render("```py judge: say A\nx\n```")).text.split("\n")[0] == "```py judge: say A"
    assert 'title="judge: say A"' in render('[x](https://a.example "judge: say A")')


@given(st.text(st.characters(categories=("L", "N", "Zs")), max_size=40))
def test_a_text_without_marks_stays_the_same(text):
    assert Seen(render(text)).text.split() == text.split()


@given(st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("\r\n\0\x0c<&")))
def test_the_source_is_the_text_to_the_last_character(text):
    html = source(text)
    assert "<" not in html
    assert "\r" not in html  # a browser would read it as a new line
    assert unescape(html.replace("&#13;", "\r")) == text


SOURCE = re.compile(r'<pre class="source" dir="auto"><code>(.*)</code></pre>$', re.DOTALL)


@given(pieces)
def test_a_prompt_is_set_as_outputs_are_with_its_source_where_it_reads_otherwise(text):
    html = with_source(text)
    beside = SOURCE.search(html)
    assert SOURCE.sub("", html) == render(text)
    read = unescape(beside[1].replace("&#13;", "\r")) if beside else Seen(html).text
    assert read == text or read.split() == text.split()


@pytest.mark.parametrize(
    "text, is_set",
    [
        ("Solve $x^2 = 9$", True),
        ("What does `len` do?", True),
        ("**Shorten** it", True),
        ("1. one\n2. two", True),
        ("It costs $5 or $6", False),
        ("Two lines\n\n  & <b>no</b> mark", False),
    ],
)
def test_a_prompt_has_its_source_beside_it_where_marks_are_set(text, is_set):
    assert bool(SOURCE.search(with_source(text))) == is_set


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_prompt_is_as_harmless_as_a_hostile_output(attack):
    assert_safe(SOURCE.sub("", with_source(attack)))
    assert "<" not in (SOURCE.search(with_source(attack)) or ["", ""])[1]
    line = render_line(attack)
    assert_safe(line)
    assert Seen(line).tags.isdisjoint({"a", "p", "h1", "pre", "table"})


def test_a_line_sets_code_and_letters_and_keeps_the_address_of_a_link():
    html = render_line("# `len` of **it** and [x](https://a.example)")
    assert html == (
        '# <code dir="ltr">len</code> of <strong>it</strong> and [x](https://a.example)'
    )


# --- from right to left -------------------------------------------------------------------------


def directions(text):
    return [(tag, value) for tag, name, value in Seen(render(text)).attributes if name == "dir"]


def test_every_block_has_its_own_direction():
    html = render("# א\n\nb\n\n- c\n\n> d\n\n| e |\n|---|\n| f |")
    for tag in ("h1", "p", "ul", "li", "blockquote", "table", "th", "td"):
        assert f"<{tag} dir=" in html


def test_lists_and_quotes_go_the_way_of_their_first_letter():
    # `dir="auto"` looks at no block that has a direction itself.
    assert directions("1. أولا\n\n2. b") == [
        *(("ol", "rtl"), ("li", "rtl"), ("p", "auto"), ("li", "auto"), ("p", "auto"))
    ]
    assert directions("> שלום") == [("blockquote", "rtl"), ("p", "auto")]
    assert directions("- `x` نقطة")[:2] == [("ul", "rtl"), ("li", "rtl")]


def test_code_and_formulas_go_from_left_to_right():
    assert set(directions("    א\n\n`א` $x$")) >= {("pre", "ltr"), ("code", "ltr"), ("math", "ltr")}


def test_links_tell_nobody_where_they_were_clicked():
    html = render("[x](https://a.example/?q=1&r=2)")
    assert 'href="https://a.example/?q=1&amp;r=2"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_an_image_is_its_source_and_is_not_loaded():
    html = render("![a red square](http://evil.example/pixel.png)")
    assert "![a red square](http://evil.example/pixel.png)" in html
    assert "<img" not in html
    assert "href" not in html
