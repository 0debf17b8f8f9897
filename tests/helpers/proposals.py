"""Files that are brought to the import page and imported as it proposes, with nothing changed."""

from judge_eval.imports import import_jobs
from judge_eval.models import Import
from voting.models import Item

COUNTED = ("votes", "voters", "verdicts", "judges")


def check_proposal(client, file):
    """Bring a file; at most two answers may be asked, and what is shown must be what comes."""
    answer = client.post("/runs/import/", {"file": file})
    address = answer.headers["Location"]
    page = client.get(address)
    form, seen = page.context["form"], page.context["seen"]
    assert form.questions + form.missing <= 2, page.context["sentence"]
    answer = client.post(address, proposed_fields(form) | {"do": "import"})
    assert answer.status_code == 302
    while job := import_jobs.claim():
        import_jobs.run(job)
    job = Import.objects.get(pk=address.split("/")[2])
    if seen.faults:
        assert job.state == Import.State.REFUSED
        return page
    assert (job.state, job.detail) == (Import.State.DONE, "")
    items = Item.objects.filter(queue=job.run.queue).select_related("a", "b").order_by("position")
    if seen.counts.is_all:
        new = {name: job.report["new"][name] for name in COUNTED}
        assert {name: getattr(seen.counts, name) for name in COUNTED} == new
        assert seen.counts.items == items.count()
    outputs = [(item.a.output, item.b.output if item.b else None) for item in items[:5]]
    for (first, second), shown in zip(outputs, seen.items, strict=False):
        texts = [output.text or "" for output in shown.outputs]
        assert texts == [text for text in (first, second) if text is not None][: len(texts)]
    return page


def proposed_fields(form):
    """Return what the form sends when nothing is changed."""
    selects = [it for c in form.columns for it in (c.role, *c.values) if it.name]
    shown = {name: form[name].value() for name in form.fields}
    sent = {select.name: select.selected for select in selects}
    return sent | {name: value for name, value in shown.items() if value not in (None, False)}
