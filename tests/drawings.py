"""Drawings that renderers and screenings like to refuse: one or a few of each kind, by hand.

Each is green in the middle where a browser without a network shows green there.
"""

from tests.hostile_svg import OPEN, data_url, drawing, png

GREEN = '<rect width="200" height="200" fill="green"/>'
_SVG = '<svg xmlns="http://www.w3.org/2000/svg"'
_PUBLIC = '"-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd"'
_LIT = '<rect width="200" height="200" fill="#fff"'


def _shape(attributes: str) -> str:
    return f'<path d="M0 0H200V200H0z" fill="green" {attributes}/>'


DRAWN = {
    "external picture": drawing(GREEN + '<image href="photo.png" width="200" height="200"/>'),
    "external picture in a filter": drawing(
        '<filter id="f"><feImage href="http://127.0.0.1/a.png"/></filter>'
        '<rect width="9" height="9" filter="url(#f)"/>' + GREEN
    ),
    "external shape": drawing(GREEN + '<use href="icons.svg#house"/>'),
    "external paint": drawing(
        GREEN + '<rect width="200" height="200" fill="url(paints.svg#sky)"/>'
    ),
    "external paint with another": drawing(
        '<rect width="200" height="200" fill="url(paints.svg#sky) green"/>'
    ),
    "external filter and mask": drawing(
        _shape('filter="url(a.svg#f)" style="mask:url(a.svg#m);clip-path:url(a.svg#c)"')
    ),
    "external style sheet": "<?xml-stylesheet href='a.css'?>" + drawing(GREEN),
    "web font": drawing(
        "<style>@import url('https://fonts.example/css2?family=A&amp;b');"
        "@font-face{font-family:A;src:url(a.woff)} .g{fill:green}</style>"
        '<rect width="200" height="200" class="g"/>'
    ),
    "link": drawing(f'<a href="https://example.org/">{GREEN}</a>'),
    "use of itself": drawing(GREEN + '<use id="a" href="#a"/>'),
    "use of what it stands in": drawing(f'<g id="a">{GREEN}<use href="#a"/></g>'),
    "mask of itself": drawing(
        f'<mask id="m" mask="url(#m)">{_LIT}/></mask>{GREEN}' + _shape('mask="url(#m)"')
    ),
    "mask in itself": drawing(
        f'<mask id="m">{_LIT} mask="url(#m)"/></mask>{GREEN}<path d="M0 0H9V9z" mask="url(#m)"/>'
    ),
    "clip paths of each other": drawing(
        '<clipPath id="a" clip-path="url(#b)"><path d="M0 0H9V9z"/></clipPath>'
        '<clipPath id="b" clip-path="url(#a)"><path d="M0 0H9V9z"/></clipPath>'
        + GREEN
        + '<path d="M0 0H9V9z" clip-path="url(#a)"/>'
    ),
    "pattern in itself": drawing(
        '<pattern id="p" width="1" height="1"><rect width="9" height="9" fill="url(#p)"/></pattern>'
        + GREEN
        + '<rect width="20" height="20" fill="url(#p)"/>'
    ),
    "patterns and gradients of each other": drawing(
        '<pattern id="p" href="#q"/><pattern id="q" href="#p"/>'
        '<linearGradient id="a" href="#b"/><radialGradient id="b" href="#a"/>'
        + GREEN
        + '<rect width="20" height="20" fill="url(#p)" stroke="url(#a)"/>'
    ),
    "marker in itself": drawing(
        '<marker id="k"><path d="M0 0L9 9" marker-end="url(#k)"/></marker>'
        + GREEN
        + '<path d="M0 0L9 9" marker-end="url(#k)"/>'
    ),
    "filter of itself": drawing(
        '<filter id="f"><feImage href="#x"/></filter>'
        + GREEN
        + '<rect id="x" width="20" height="20" filter="url(#f)"/>'
    ),
    "document type": f"<!DOCTYPE svg PUBLIC {_PUBLIC}>{drawing(GREEN)}",
    "document type with attributes": (
        f"<!DOCTYPE svg [<!ATTLIST rect rx CDATA #IMPLIED>]>{drawing(GREEN)}"
    ),
    "no size": f'{_SVG}><rect width="300" height="150" fill="green"/></svg>',
    "only a width": f'{_SVG} width="300"><rect width="300" height="150" fill="green"/></svg>',
    "percentages": f'{_SVG} width="50%"><rect width="150" height="150" fill="green"/></svg>',
    "a radius beyond the drawing": drawing(
        '<filter id="f"><feMorphology operator="dilate" radius="9999"/></filter>'
        '<rect x="90" y="90" width="20" height="20" fill="green" filter="url(#f)"/>'
    ),
    "a radius of half the drawing": drawing(
        '<filter id="f"><feMorphology operator="dilate" radius="100"/></filter>'
        '<rect x="90" y="90" width="20" height="20" fill="green" filter="url(#f)"/>'
    ),
    "a filter far larger than the drawing": drawing(
        '<filter id="f" x="-99" width="200"><feOffset/></filter>' + _shape('filter="url(#f)"')
    ),
    "many octaves": drawing(
        '<filter id="f"><feTurbulence baseFrequency=".1" numOctaves="12"/></filter>'
        '<rect width="9" height="9" filter="url(#f)"/>' + GREEN
    ),
    "a handler": drawing(GREEN.replace("<rect", '<rect onclick="a()"')),
    "animation": drawing(GREEN.replace("/>", '><animate attributeName="x" to="9"/></rect>')),
    "markup of an editor": drawing(
        '<metadata><r:RDF xmlns:r="urn:r"><r:li r:resource="http://a"/></r:RDF></metadata>' + GREEN
    ),
    "a base": OPEN.replace("<svg", '<svg xml:base="http://127.0.0.1/"') + GREEN + "</svg>",
}
NOT_DRAWN = {
    "a drawing in it": (
        drawing(f'<image href="{data_url(drawing(GREEN).encode(), "image/svg+xml")}"/>'),
        "the drawing embeds data:image/svg+xml",
    ),
    "a bitmap of another kind": (
        drawing(f'<image href="{data_url(png(1, 1), "image/bmp")}"/>'),
        "only PNG, JPEG, GIF and WebP in base64 are allowed",
    ),
    "entities": (f'<!DOCTYPE svg [<!ENTITY c "green">]>{drawing(GREEN)}', "defines entities (c)"),
    "HTML": (drawing('<foreignObject width="9" height="9"/>'), "contains a foreignObject element"),
    "a script": (drawing("<script/>" + GREEN), "contains a script element"),
    "no area": (f'{_SVG} width="0" height="9"/>', "has no area (0 by 9)"),
    "groups of each other": (
        drawing('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>'),
        "refers to itself, or stands for too many elements",
    ),
}
