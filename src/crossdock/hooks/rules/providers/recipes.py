"""What the rest of the slice needs of providers: their names, their recipes, and checks of what users say.

signing = parse_signing(provider, body.signing)      # when a source is made or changed
check_secret(provider, body.signing_secret)
refusal = recipe_of(provider, signing).verify(arrival, secrets)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from crossdock.hooks.rules.providers.keys import UnusableSecret
from crossdock.hooks.rules.providers.recipe import Recipe
from crossdock.hooks.rules.providers.settings import converted, refuse
from crossdock.hooks.rules.providers.table import CONFIGURED, FIXED, Configured
from crossdock.kit.errors import FieldProblem

SECRET_CHARACTERS_MAX = 4096

_FIXED: dict[str, Recipe] = {recipe.provider: recipe for recipe in FIXED}

PROVIDERS: tuple[str, ...] = (*_FIXED, *CONFIGURED)


def recipe_of(provider: str, signing: Mapping[str, Any] | None) -> Recipe:
    """Raises InvalidInput for an unknown provider, and for settings that `parse_signing` would refuse."""
    fixed = _FIXED.get(provider)
    if fixed is not None:
        return fixed
    configured = _configured(provider)
    return configured.make(_settings(configured, signing, "signing"))


def parse_signing(provider: str, raw: object, field: str = "signing") -> dict[str, Any] | None:
    """The settings as they are to be stored; None where the provider has none. Raises InvalidInput."""
    if provider in _FIXED:
        if raw not in (None, {}):
            refuse(FieldProblem(field, "not_taken", f"{provider} signs in one way only: leave this out."))
        return None
    configured = _configured(provider)
    settings: dict[str, Any] = msgspec.to_builtins(_settings(configured, raw, field))
    return settings or None


def check_secret(provider: str, secret: str, field: str = "signing_secret") -> None:
    """Refuses a secret by which nothing of this provider could ever be verified. Raises InvalidInput."""
    fixed = _FIXED.get(provider)
    check = _configured(provider).check_secret if fixed is None else fixed.scheme.check
    try:
        _check_text(secret)
        check(secret)
    except UnusableSecret as unusable:
        refuse(FieldProblem(field, "unusable_secret", f"A secret of {provider} {unusable}."))


def _check_text(secret: str) -> None:
    if len(secret) > SECRET_CHARACTERS_MAX:
        raise UnusableSecret(f"has at most {SECRET_CHARACTERS_MAX} characters")
    if secret != secret.strip():
        raise UnusableSecret("has no white space at its ends: was it copied with a line break?")


def _settings(configured: Configured, raw: object, field: str) -> Any:
    settings = converted({} if raw is None else raw, configured.settings, field)
    configured.check(settings, field)
    return settings


def _configured(provider: str) -> Configured:
    configured = CONFIGURED.get(provider)
    if configured is None:
        refuse(FieldProblem("provider", "not_a_choice", f"One of: {', '.join(PROVIDERS)}."))
    return configured
