"""The routes of the accounts part, with who may call which."""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide

from crossdock.hooks.api.billing import show_usage, take_stripe_event
from crossdock.hooks.api.keys import Keys
from crossdock.hooks.api.logins import log_in, log_out
from crossdock.hooks.api.oauth import SignIn
from crossdock.hooks.api.users import Me, UserAdministration, operator_or_sign_up
from crossdock.hooks.service.accounts import AccountServices
from crossdock.http.guards import Authenticator
from crossdock.http.management import guarded_router, open_router
from crossdock.http.pages import page_request


def routers(services: AccountServices, authenticator: Authenticator) -> list[Router]:
    shared: dict[str, object] = {
        "users": services.users,
        "api_keys": services.keys,
        "logins": services.logins,
        "oauth": services.oauth,
        "usage": services.usage,
        "billing": services.billing,
        "has_https": services.has_https,
    }
    administration = Router(
        path="/",
        guards=[operator_or_sign_up(authenticator, is_open=services.may_sign_up)],
        dependencies={"page": Provide(page_request, sync_to_thread=False)},
        route_handlers=[open_router([UserAdministration], shared)],
    )
    return [
        administration,
        open_router([log_in, SignIn, take_stripe_event], shared),
        guarded_router(authenticator, [Me, Keys, log_out, show_usage], shared),
    ]
