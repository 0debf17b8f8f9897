"""A model's text as HTML: only the allowed tags, no script, no style, no request."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanjudge.lib.markdown import render

TAGS = set(
    "a p br hr em strong code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 "
    "table thead tbody tr th td".split()
)
ATTACKS = [
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
    st.sampled_from(ATTACKS) | st.sampled_from(list("[](){}<>!`*_#|-&;:\"'\\\n\t ")) | st.text(),
    max_size=12,
).map("".join)


class Seen(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes = set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]


def assert_safe(html):
    seen = Seen(html)
    assert seen.tags <= TAGS
    for tag, name, value in seen.attributes:
        assert (tag, name) in {("a", "href"), ("a", "rel"), ("ol", "start")}
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
    html = render("# Title\n\n**bold** `code`\n\n3. three\n4. four\n\n| a |\n|---|\n| b |")
    for part in ("<h1>Title</h1>", "<strong>bold</strong>", "<code>code</code>", '<ol start="3">'):
        assert part in html
    assert "<td>b</td>" in html


def test_links_tell_nobody_where_they_were_clicked():
    html = render("[x](https://a.example/?q=1&r=2)")
    assert 'href="https://a.example/?q=1&amp;r=2"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_an_image_is_left_out_and_its_words_stay():
    html = render("![a red square](http://evil.example/pixel.png)")
    assert "red square" in html
    assert "<img" not in html
