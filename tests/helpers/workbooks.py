"""Workbooks as files, made by hand: hostile ones too."""

import io
import zipfile

# All cells before the last one would be held: 17,179,869,184.
BOMB = (
    '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
)
# The same, without saying where its last cell is.
HIDDEN_BOMB = '<row r="1"><c r="XFD1"><v>1</v></c></row><row r="1048576"><c><v>1</v></c></row>'


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def workbook(*sheets):
    """Make a workbook as Excel writes it: each sheet from its rows of cells, or as XML."""
    names = "".join(
        f'<sheet name="S{n}" sheetId="{n}" r:id="rId{n}"/>' for n in range(1, len(sheets) + 1)
    )
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "".join(
        f'<Relationship Id="rId{n}" Type="{kind}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kind}"><sheets>{names}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}'
        "</Relationships>",
    }
    for number, rows in enumerate(sheets, start=1):
        is_xml = isinstance(rows, str)
        cells = rows if is_xml else "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        sheet = f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
        members[f"xl/worksheets/sheet{number}.xml"] = sheet
    return zipped(members)


def cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"
