"""The diagnosis of a run: the verdict over all findings, in one sentence that an engineer can act on."""

from __future__ import annotations

import re

import msgspec

from trueline.checks import registry, rests_on_failed
from trueline.diagnose.ending import why_incomplete
from trueline.diagnose.rank import cause_of, mark_consequences
from trueline.model import Comparison, Conclusion, Diagnosis, Divergence, Evidence, Finding, NonFinite, Verdict
from trueline.store import Run
from trueline.views.nonfinite import first_nonfinite

# How sure a divergence from the reference is: with a setting that explains it, and without.
_SURE, _UNEXPLAINED = 0.9, 0.6


def diagnose(run: Run, findings: list[Finding], closer: Run | None = None) -> Diagnosis:
    """Rank the findings into one cause. Without one, say `no_problem` only if there was something to find it in. `closer`: a
    recording of the same script that shows more."""
    marked = mark_consequences(findings)
    cause = cause_of(marked)
    nonfinite = _first_nonfinite(run, closer)
    incomplete = why_incomplete(run)
    if cause is not None:
        verdict = Verdict("problem_found", cause.id, headline_of(cause), incomplete)
    elif (reason := why_inconclusive(run, marked, nonfinite)) is not None:
        verdict = Verdict("inconclusive", None, reason, incomplete)
    else:
        doubt = "" if incomplete is None else f"Incomplete: {incomplete} "
        verdict = Verdict("no_problem", None, doubt + _all_well(run, marked), incomplete)
    unseen = sorted((closer or run).unseen)
    return Diagnosis(run.info.name, verdict, marked, nonfinite=nonfinite, unseen=unseen, failed_watches=run.failed_anywhere)


def _first_nonfinite(run: Run, closer: Run | None) -> NonFinite | None:
    """As the run tells of it; as the closer look does, where that one knows the operation."""
    found = first_nonfinite(run)
    if found is None or found.operation is not None or closer is None:
        return found
    seen = first_nonfinite(closer)
    return seen if seen is not None and seen.operation is not None else found


def with_comparison(diagnosis: Diagnosis, reference: str, comparison: Comparison) -> Diagnosis:
    """The diagnosis with what a reference shows. Where the two part for a reason that is known, that is the cause."""
    found = comparison.first_divergence
    verdict, checklist = diagnosis.verdict, diagnosis.checklist
    if found is not None and (found.cause is not None or verdict.cause is None):
        verdict = Verdict("problem_found", found.item, sentence_of_divergence(found), verdict.incomplete)
        checklist = [_seen_beside_reference(each, found) if each.id == found.item else each for each in checklist]
    elif found is None and verdict.status == "no_problem":
        # What could not be compared is not the same.
        compared = comparison.first_step_loss_differs is not None
        status = "no_problem" if compared else "inconclusive"
        verdict = Verdict(status, None, f"{verdict.headline} {comparison.verdict}", verdict.incomplete)
    return msgspec.structs.replace(diagnosis, verdict=verdict, checklist=checklist, reference=reference, comparison=comparison)


def _seen_beside_reference(finding: Finding, found: Divergence) -> Finding:
    """The item that a divergence belongs to is found, whatever the script alone shows of it."""
    if finding.conclusion is Conclusion.PROBLEM_FOUND:
        return finding
    return msgspec.structs.replace(
        finding,
        conclusion=Conclusion.PROBLEM_FOUND,
        summary=sentence_of_divergence(found),
        location=found.location,
        fix=found.fix,
        confidence=_SURE if found.cause is not None else _UNEXPLAINED,
        evidence=[Evidence(text) for text in found.evidence],
        limits="Seen beside the reference only.",
    )


def sentence_of_divergence(found: Divergence) -> str:
    """Where two runs part and why, in one sentence or two."""
    place = f" in {found.module}" if found.module else ""
    where = f" ({found.location})" if found.location else ""
    words = {"init": "the initial weights", "data": "the data", "loss": "the loss", "update": "the update"}
    what = words.get(found.phase, f"the {found.phase} pass")
    return f"It parts from the reference at step {found.step} in {what}{place}{where}: {found.cause or 'no setting explains it.'}"


def diagnose_nothing(run_name: str, reason: str) -> Diagnosis:
    """The diagnosis of a run that left no recording at all: every item not checked, for the same reason."""
    checklist = [
        Finding(check.id, check.title, Conclusion.NOT_CHECKED, f"Not checked: {reason}", limits=reason)
        for check in registry().values()
    ]
    return Diagnosis(run_name, Verdict("inconclusive", None, reason, reason), checklist)


def headline_of(cause: Finding) -> str:
    """Title, first sentence of the summary, and line of the cause."""
    summary = re.split(r"(?<=[.:;])\s+(?=[A-Z])", cause.summary.strip())[0].rstrip(".:;")
    where = "" if cause.location is None or str(cause.location) in summary else f" ({cause.location})"
    return f"{cause.title}: {summary}{where}."


def why_inconclusive(run: Run, findings: list[Finding], nonfinite: NonFinite | None = None) -> str | None:
    """Why a run without a cause cannot be called healthy; None when it can."""
    if run.info.recorder_error and not run.steps:
        return f"The recorder stopped before the first step was complete: {run.info.recorder_error}"
    if not run.steps:
        if run.info.status == "failed":
            ending = run.info.error or f"exit code {run.info.exit_code}"
            return f"The script failed before its first training step was complete ({ending})."
        if run.info.status in {"interrupted", "killed"}:
            return f"The script was {run.info.status} before its first training step was complete."
        return "The script never trained: no backward pass and no optimizer step were seen."
    if run.info.recorder_error:
        return f"The recorder stopped after step {run.steps[-1].id}: {run.info.recorder_error}"
    lost = [finding.id for finding in findings if rests_on_failed(run, finding)]
    if lost:
        failed = " and ".join(each.in_words for each in run.failed_anywhere)
        return f"No problem found in what was recorded, but {failed}: {', '.join(lost)} could not be checked."
    if nonfinite is not None:
        return f"{sentence_of(nonfinite)} No item that was checked explains it."
    if not any(finding.conclusion is Conclusion.NO_PROBLEM for finding in findings):
        return "No item of the checklist could be checked on this recording."
    return None


def sentence_of(nonfinite: NonFinite) -> str:
    """The first NaN or infinite value, in words."""
    what = {"forward": "A value", "backward": "A gradient", "update": "A weight"}[nonfinite.phase]
    place = f" in {nonfinite.module}" if nonfinite.module else f" in {nonfinite.operation}" if nonfinite.operation else ""
    where = f" ({nonfinite.location})" if nonfinite.location else ""
    pass_name = "update" if nonfinite.phase == "update" else f"{nonfinite.phase} pass"
    return f"{what} became NaN or infinite at step {nonfinite.step}, first seen in the {pass_name}{place}{where}."


def _all_well(run: Run, findings: list[Finding]) -> str:
    counts = {conclusion: sum(finding.conclusion is conclusion for finding in findings) for conclusion in Conclusion}
    steps, passed = len(run.steps), counts[Conclusion.NO_PROBLEM]
    sentence = f"No problem found in {steps} step{'s'[: steps != 1]}: {passed} item{'s'[: passed != 1]} passed"
    for conclusion, words in (
        (Conclusion.NOT_APPLICABLE, "not applicable"),
        (Conclusion.NOT_CHECKED, "not checked"),
        (Conclusion.ERROR, "failed to run"),
    ):
        if counts[conclusion]:
            sentence += f", {counts[conclusion]} {words}"
    return sentence + "."
