"""The steps and checks that agents can name."""

from handrail.pipelines import checks, steps
from handrail.pipelines.agent_file import RegisteredFunction
from handrail.pipelines.research.report import ReportOptions, report
from handrail.pipelines.research.retrieve import RetrieveOptions, WebOptions, retrieve, search_web
from handrail.pipelines.research.verify import NoOptions, VerifyOptions, verified_or_last, verify
from handrail.pipelines.steps import LIST, TEXT

SOURCE = {
    "type": "object",
    "properties": dict.fromkeys(("label", "text", "place", "link", "paragraph", "document"), TEXT),
}
WEB_RESULT = {"type": "object", "properties": dict.fromkeys(("title", "url", "text"), TEXT)}
OBJECT = {"type": "object"}
STEPS = {
    **steps.STEPS,
    "search_web": RegisteredFunction(
        WebOptions, search_web, {"results": {"type": "array", "items": WEB_RESULT}, "note": TEXT}
    ),
    "retrieve": RegisteredFunction(
        RetrieveOptions,
        retrieve,
        {
            "sources": {"type": "array", "items": SOURCE},
            "context": TEXT,
            "searched": LIST,
            "reused": LIST,
            "missing": LIST,
            "left_out": {"type": "integer"},
        },
    ),
    "verify": RegisteredFunction(
        VerifyOptions,
        verify,
        {
            "labelled": OBJECT,
            "said": TEXT,
            "scores": OBJECT,
            "failed": LIST,
            "issues": LIST,
            "verified": {"type": "boolean"},
            "last": {"type": "boolean"},
        },
    ),
    "report": RegisteredFunction(
        ReportOptions,
        report,
        {"report": TEXT, "answers": {"type": "array", "items": OBJECT}, "path": TEXT, "problem": TEXT},
    ),
}
CHECKS = {**checks.CHECKS, "verified_or_last": RegisteredFunction(NoOptions, verified_or_last)}
