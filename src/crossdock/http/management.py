"""What the management API adds to Litestar: strict bodies, and problems for every error, its own too."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, Router
from litestar.datastructures import ResponseHeader
from litestar.di import Provide
from litestar.dto import AbstractDTO
from litestar.dto.data_structures import DTOFieldDefinition
from litestar.exceptions import (
    ClientException,
    HTTPException,
    InternalServerException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)
from litestar.openapi.spec import Reference, Schema
from litestar.types import ControllerRouterHandler
from litestar.typing import FieldDefinition

from crossdock.http.asgi import invalid_content_length, too_large
from crossdock.http.bodies import body_of, field_problem
from crossdock.http.guards import Authenticator, authenticated, principal_of
from crossdock.http.idempotency import idempotent_request
from crossdock.http.pages import page_request
from crossdock.http.problems import MEDIA_TYPE, MethodNotAllowed, UnsupportedMediaType, problem_for
from crossdock.kit.errors import (
    CrossdockError,
    FieldProblem,
    InvalidInput,
    MalformedRequest,
    NotFound,
)

BODY_BYTES_MAX = 1024 * 1024


class StrictBody(AbstractDTO[Any]):
    """Reads a handler's `data` with `bodies.Body`. Set once, on the application."""

    def decode_bytes(self, value: bytes) -> Any:
        check_media_type(self.asgi_connection.headers.get("content-type"))
        field = self.asgi_connection.route_handler.parsed_data_field
        return body_of(field.annotation).decode(value)

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: Any = None
    ) -> None:
        """Nothing to prepare: decoders are made per type, on first use."""

    @classmethod
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: Any
    ) -> Reference | Schema:
        schema: Reference | Schema = schema_creator.for_field_definition(field_definition)
        return schema

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Generator[DTOFieldDefinition, None, None]:
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        return False


def management_app(handlers: Sequence[ControllerRouterHandler]) -> Litestar:
    """The slices' handlers as an application. Debug modes stay off, whatever Litestar's own variables say."""
    return Litestar(
        handlers,
        dto=StrictBody,
        return_dto=None,
        exception_handlers={Exception: answer_exception},
        request_max_body_size=BODY_BYTES_MAX,
        response_headers=[ResponseHeader(name="cache-control", value="no-store")],
        openapi_config=None,
        logging_config=None,
        debug=False,
        pdb_on_exception=False,
    )


def guarded_router(
    authenticator: Authenticator,
    handlers: Sequence[ControllerRouterHandler],
    shared: Mapping[str, object],
) -> Router:
    """A slice's handlers, for authenticated requests only.

    They may take, as `NamedDependency`: `principal`, `page`, `idempotency`, and what `shared` names.
    """
    return Router(
        path="/",
        route_handlers=handlers,
        guards=[authenticated(authenticator)],
        dependencies={
            "principal": Provide(principal_of, sync_to_thread=False),
            "page": Provide(page_request, sync_to_thread=False),
            "idempotency": Provide(idempotent_request),
            **_provided(shared),
        },
    )


def open_router(handlers: Sequence[ControllerRouterHandler], shared: Mapping[str, object]) -> Router:
    """Handlers that anybody may call."""
    return Router(path="/", route_handlers=handlers, dependencies=_provided(shared))


def _provided(shared: Mapping[str, object]) -> dict[str, Provide]:
    return {name: Provide(_always(value), sync_to_thread=False) for name, value in shared.items()}


def _always(value: object) -> Callable[[], Any]:
    # Litestar reads the annotation when the application is made, so it can't be a lambda.
    def provide() -> Any:
        return value

    return provide


def check_media_type(content_type: str | None) -> None:
    """A body without a Content-Type is taken as JSON; one that says otherwise is not.

    Except for `curl -d`, which says "form" of whatever it sends: a form that is not JSON fails as JSON.
    """
    if content_type is None:
        return
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind in ("application/json", "application/x-www-form-urlencoded"):
        return
    if not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMediaType(
            "unsupported_media_type", "Send JSON, with the header Content-Type: application/json."
        )


def answer_exception(request: Request[Any, Any, Any], exception: Exception) -> Response[bytes]:
    """Litestar's exception handler for everything."""
    problem = problem_for(_translated(exception, request))
    # The response class adds these two itself.
    headers = {
        name.decode(): value.decode("latin-1")
        for name, value in problem.headers
        if name not in (b"content-type", b"content-length")
    }
    return Response(problem.body, status_code=problem.status, headers=headers, media_type=MEDIA_TYPE)


def _translated(exception: Exception, request: Request[Any, Any, Any]) -> Exception:
    """Litestar's own exceptions as ours; any other is returned as it is."""
    if isinstance(exception, NotFoundException):
        return NotFound("not_found", "Nothing is at this path.")
    if isinstance(exception, MethodNotAllowedException):
        # Litestar's own order is that of a set: another one in each process.
        methods = (exception.headers or {}).get("allow", "").split(", ")
        return MethodNotAllowed(", ".join(sorted(methods)))
    if isinstance(exception, ValidationException):
        return _validation(exception, request)
    if isinstance(exception, InternalServerException) and "disconnected" in exception.detail:
        return MalformedRequest("client_gone", "The request ended before its body was complete.")
    if isinstance(exception, HTTPException) and exception.status_code == 413:
        return too_large(BODY_BYTES_MAX)
    if isinstance(exception, ClientException) and "content-length" in exception.detail:
        return invalid_content_length()
    if isinstance(exception, HTTPException) and 400 <= exception.status_code < 500:
        return MalformedRequest("malformed_request", exception.detail)
    return exception


def _validation(exception: ValidationException, request: Request[Any, Any, Any]) -> CrossdockError:
    """Wrong parameters of the query, the path or the headers, and a body that is not there."""
    cause = exception.__cause__
    if isinstance(cause, msgspec.ValidationError) and "required field `data`" in str(cause):
        return MalformedRequest("body_required", "The request needs a JSON body.")
    if isinstance(cause, KeyError):
        missing = FieldProblem(str(cause.args[0]), "required", "This parameter is required.")
        return InvalidInput("A parameter is missing.", missing)
    problems = []
    for each in exception.extra if isinstance(exception.extra, list) else []:
        said, name = field_problem(each["message"]), each.get("key", "")
        choices = _choices(name, request) if said.code == "not_a_choice" else ()
        detail = f"Expected one of {', '.join(choices)}." if choices else said.detail
        problems.append(FieldProblem(name, said.code, detail))
    return InvalidInput("The request's parameters are not valid.", *problems)


def _choices(name: str, request: Request[Any, Any, Any]) -> tuple[str, ...]:
    """The values of a parameter that is an enum."""
    field = request.route_handler.parsed_fn_signature.parameters.get(name)
    kinds = () if field is None else (field.annotation, *field.args)
    enums = (each for each in kinds if isinstance(each, type) and issubclass(each, Enum))
    return tuple(str(member.value) for each in enums for member in each)
