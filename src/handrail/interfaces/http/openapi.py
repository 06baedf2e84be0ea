"""The OpenAPI document, made from the table of endpoints and the types that they read and write."""

from functools import cache
from inspect import getdoc
from types import UnionType
from typing import Any, get_args

from msgspec.json import encode, schema_components
from starlette.responses import Response

from handrail import __version__
from handrail.interfaces.http.api.table import ENDPOINTS
from handrail.interfaces.http.endpoint import EVENT_STREAM, Endpoint, Upload
from handrail.interfaces.http.errors import JSON, ErrorBody, FlatError
from handrail.interfaces.http.event_feed import LiveText, RecordedEvent
from handrail.protocol.values import Tagged

Schema = dict[str, Any]
REFERENCE = "#/components/schemas/{name}"
ERRORS = {
    400: "The request is wrong",
    401: "No valid token",
    403: "A page of another origin sent it",
    404: "There is no such thing",
    409: "Not possible in this state",
}
BODY_ERRORS = {
    408: "The body came too slowly",
    413: "The body is too large",
    415: "The body has another type",
}
EVENTS = (
    "Server-sent events. An event without a name has a `RecordedEvent` as its data, and its `seq` as its id. "
    "`delta` has a `LiveText`. `problem` has a `Problem`; the stream ends after it. Send the last id as "
    "`Last-Event-ID` to resume."
)


@cache
def openapi_document(workspaces: tuple[str, ...]) -> bytes:
    """The document as JSON, for a server of these workspaces."""
    types = list(dict.fromkeys([ErrorBody, FlatError, RecordedEvent, LiveText, *_all_types()]))
    schemas, components = schema_components(types, ref_template=REFERENCE)
    by_type = dict(zip(types, schemas, strict=True))
    # The token is checked before it is known which endpoint a request is for.
    flat = {"anyOf": [by_type[FlatError], by_type[ErrorBody]]}
    error, flat_error = (
        {"description": "Any other error", "content": {JSON: {"schema": schema}}}
        for schema in (by_type[ErrorBody], flat)
    )
    paths: dict[str, Schema] = {}
    for endpoint in ENDPOINTS:
        prefix = "/api" if endpoint.of_server else "/api/w/{workspace}"
        failed = flat_error if endpoint.invalid else error
        operation = _operation(endpoint, workspaces, by_type, components, failed)
        paths.setdefault(prefix + endpoint.path, {})[endpoint.method.lower()] = operation
    return encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Handrail",
                "version": __version__,
                "description": "With one workspace, `/api/...` means the same as `/api/w/{workspace}/...`.",
            },
            "security": [{"token": []}, {"cookie": []}],
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "cookie": {"type": "apiKey", "in": "cookie", "name": "handrail_PORT"},
                },
            },
        }
    )


def _all_types() -> list[Any]:
    found = [endpoint.types.get(name) for endpoint in ENDPOINTS for name in ("query", "body")]
    found += [each for endpoint in ENDPOINTS for each in _answers(endpoint)]
    return [each for each in found if each is not None and each is not Upload and not _is_response(each)]


def _answers(endpoint: Endpoint) -> tuple[Any, ...]:
    """The types of which the answer is one."""
    type_ = endpoint.types["return"]
    return get_args(type_) if isinstance(type_, UnionType) else (type_,)


def _is_response(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Response)


def _operation(
    endpoint: Endpoint,
    workspaces: tuple[str, ...],
    by_type: dict[Any, Schema],
    components: Schema,
    error: Schema,
) -> Schema:
    types = endpoint.types
    in_path: dict[str, Schema] = {} if endpoint.of_server else {"workspace": {"enum": workspaces}}
    in_path |= {name: {"minLength": 1} for name in endpoint.parameters}
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", **schema}}
        for name, schema in in_path.items()
    ]
    if "query" in types:
        struct = components[by_type[types["query"]]["$ref"].rpartition("/")[2]]
        parameters += [
            {
                "name": name,
                "in": "query",
                "schema": schema,
                "required": name in struct["required"],
                "description": schema.pop("description", ""),
            }
            for name, schema in struct["properties"].items()
        ]
    text = {"type": "string", "pattern": "^[!-~]{1,200}$"}
    parameters += [{"name": name, "in": "header", "schema": text} for name in endpoint.headers]
    answer: Schema = {"description": endpoint.summary}
    if _is_response(types["return"]):
        answer["content"] = {endpoint.returns: {"schema": {"type": "string"}}}
        if endpoint.returns == EVENT_STREAM:
            answer["description"] = getdoc(endpoint.function) if endpoint.invalid else EVENTS
            answer["content"] = {EVENT_STREAM: {}}
    else:
        schemas = [by_type[each] for each in _answers(endpoint)]
        answer["content"] = {JSON: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}
    operation: Schema = {
        "operationId": endpoint.function.__name__,
        "summary": endpoint.summary,
        "parameters": parameters,
        "responses": {str(endpoint.status): answer, "default": error},
    }
    kinds = ERRORS | (BODY_ERRORS if "body" in types else {})
    operation["responses"] |= {str(status): error | {"description": text} for status, text in kinds.items()}
    operation["responses"]["431"] = {"description": "The address or the headers are too long"}
    if "body" in types:
        schema = _body_schema(types["body"], by_type, components)
        operation["requestBody"] = {"required": True, "content": {endpoint.accepts: {"schema": schema}}}
    return operation


def _body_schema(type_: Any, by_type: dict[Any, Schema], components: Schema) -> Schema:
    if type_ is Upload:
        return {"type": "string", "format": "binary"}
    schema = by_type[type_]
    if not (isinstance(type_, type) and issubclass(type_, Tagged)):
        return schema
    # Where only one type is expected, nobody needs to name it.
    described: Schema = components[schema["$ref"].rpartition("/")[2]]
    return described | {"required": [name for name in described["required"] if name != "type"]}
