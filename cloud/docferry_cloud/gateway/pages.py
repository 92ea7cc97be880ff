"""What all pages for people have in common: texts escaped, nothing inline, and a policy that holds browsers to it."""

from __future__ import annotations

import jinja2


def templates(package: str) -> jinja2.Environment:
    """The templates of a package; a name that a page does not know is an error, never a gap."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_headers(*more: str) -> dict[str, str]:
    """Headers of a page with files of its own origin alone; `more` are further directives, e.g. `worker-src 'self'`."""
    own = ("script-src", "style-src", "img-src", "connect-src", "form-action")
    none = ("default-src", "base-uri", "frame-ancestors")
    policy = [*(f"{name} 'none'" for name in none), *(f"{name} 'self'" for name in own), *more]
    # `same-origin`, since under `no-referrer` a form's POST comes with the origin "null".
    return {"content-security-policy": "; ".join(policy), "referrer-policy": "same-origin"}
