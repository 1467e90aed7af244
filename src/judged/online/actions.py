"""What the names of actions mean: the ones that logs use, as those that metrics know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.online.tables import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = {
    "click": (
        "click item_click product_click result_click document_click serp_click search_result_click list_click "
        "click_result click_through clickthrough select_item open_result visit_page visitpage"
    ),
    "impression": (
        "impression impressions item_impression product_impression result_impression list_view view_item_list"
    ),
    "hover": "hover item_hover product_hover result_hover mouse_over mouseover",
    "heartbeat": "heartbeat page_ping ping checkin check_in",
    "page_exit": "page_exit exit leave page_leave pageleave unload page_unload",
    "add_to_cart": "add_to_cart addtocart add_to_basket cart_add atc",
    "purchase": "purchase buy order transaction order_placed",
    "copy": "copy copy_text text_copy",
    "scroll": "scroll page_scroll scroll_depth",
    "like": "like thumbs_up thumb_up upvote",
    "dislike": "dislike thumbs_down thumb_down downvote",
    "rating": "rating rate star_rating",
    "search": "search on_search query view_search_results search_result_page searchresultpage site_search",
}
"""Names by what they mean. "view" is missing on purpose: it is an impression here and an opened product there."""

_KNOWN = {name: action for action, names in NAMES.items() for name in names.split()}


def action_of(name: str, actions: Mapping[str, str] | None = None) -> str | None:
    """Tell what a log's name of an action means.

    Parameters
    ----------
    name
        As the log has it. Case does not matter, and blanks and hyphens are as good as underscores.
    actions
        What this log says itself, which goes first.

    Returns
    -------
    str or None
        One of ACTIONS; None: nobody knows.

    Examples
    --------
    >>> action_of("Item-Click"), action_of("view"), action_of("view", {"view": "click"})
    ('click', None, 'click')
    """
    given = actions or {}
    if name in given:
        return given[name]
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    return plain if plain in ACTIONS else _KNOWN.get(plain)


def checked(actions: Mapping[str, str]) -> dict[str, str]:
    """Check that names mean actions that there are.

    Raises
    ------
    InputError
        If one does not.
    """
    for name, action in actions.items():
        if action not in ACTIONS:
            raise InputError(
                f"{name!r} is said to mean {action!r}, which is no action", fix=f"one of {', '.join(ACTIONS)}"
            )
    return dict(actions)
