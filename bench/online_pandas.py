"""Thirteen metrics of a UBI log by device in pandas, with errors by the delta method over users: see bench/online.py.

Written as an analyst would who knows pandas well: no row is looked at in Python.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

_AFTER_THE_CLICK = ("heartbeat", "add_to_cart", "purchase")
_SATISFIED = pd.Timedelta(seconds=30)


def main() -> None:
    """Read, compute, print."""
    pages, events = read(Path(sys.argv[1]))
    print(json.dumps({"estimates": estimates(facts(pages, events))}))


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read both tables, structs flattened, ids that are joined on as categories."""
    queries = pq.read_table(
        folder / "ubi_queries.parquet",
        columns=["query_id", "client_id", "session_id", "timestamp", "query_response_hit_ids", "query_attributes"],
    ).flatten()
    shown = queries["query_response_hit_ids"].combine_chunks()
    pages = pd.DataFrame(
        {
            "query_id": queries["query_id"].to_pandas(),
            "user": queries["client_id"].to_pandas(),
            "session": queries["session_id"].to_pandas(),
            "time": queries["timestamp"].to_pandas(),
            "shown": np.diff(shown.offsets.to_numpy()),
            "device": queries["query_attributes.device"].to_pandas().astype("category"),
            "total": queries["query_attributes.result_count"].to_pandas(),
            "latency": queries["query_attributes.latency_ms"].to_pandas() / 1000,
        }
    )
    wanted = ["query_id", "session_id", "action_name", "timestamp", "event_attributes"]
    given = pq.read_table(folder / "ubi_events.parquet", columns=wanted, read_dictionary=["action_name"])
    given = given.flatten().flatten()
    events = pd.DataFrame(
        {
            "query_id": given["query_id"].to_pandas(),
            "session": given["session_id"].to_pandas(),
            "action": given["action_name"].to_pandas(),
            "time": given["timestamp"].to_pandas(),
            "rank": given["event_attributes.position.ordinal"].to_pandas(),
        }
    )
    return pages, events


def facts(pages: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
    """Give one row a page with numerators and denominators."""
    signs = pd.concat(
        [pages[["session", "time"]], events.loc[~events["action"].isin(_AFTER_THE_CLICK), ["session", "time"]]]
    )
    signs = signs.rename(columns={"time": "next"}).sort_values("next")
    clicks = events[events["action"] == "click"].sort_values("time")
    clicks = pd.merge_asof(
        clicks, signs, left_on="time", right_on="next", by="session", direction="forward", allow_exact_matches=False
    )
    clicks["satisfied"] = clicks["next"].isna() | (clicks["next"] - clicks["time"] >= _SATISFIED)
    opened = clicks.groupby(["query_id", "rank"], as_index=False).agg(
        satisfied=("satisfied", "max"), events=("rank", "size"), time=("time", "min")
    )
    first = opened.sort_values(["time", "rank"]).drop_duplicates("query_id").set_index("query_id")["rank"]
    found = opened.groupby("query_id").agg(
        opened=("rank", "size"), highest=("rank", "min"), satisfied=("satisfied", "sum"), clicks=("events", "sum")
    )
    found["first_rr"] = 1 / first
    for name, action in (("cart", "add_to_cart"), ("bought", "purchase")):
        found = found.join(events[events["action"] == action].groupby("query_id").size().rename(name), how="outer")
    page = pages.join(found, on="query_id")
    page["topmost_rr"] = 1 / page["highest"]
    page[["opened", "satisfied", "clicks", "first_rr", "topmost_rr", "cart", "bought"]] = page[
        ["opened", "satisfied", "clicks", "first_rr", "topmost_rr", "cart", "bought"]
    ].fillna(0)
    page["page"] = 1.0
    page["empty"] = (page["total"] == 0).astype(float)
    page["answered"] = 1 - page["empty"]
    for name in ("opened", "satisfied", "cart", "bought"):
        page[f"any_{name}"] = (page[name] > 0).astype(float)
    page["abandoned"] = 1 - page["any_opened"]
    return page


METRICS = {
    "ImpressionCTR": ("opened", "shown"),
    "PageCTR": ("any_opened", "answered"),
    "ClicksPerPage": ("opened", "answered"),
    "FirstClickRR": ("first_rr", "answered"),
    "TopmostClickRR": ("topmost_rr", "answered"),
    "SatisfiedClicks": ("satisfied", "clicks"),
    "SatisfiedPageCTR": ("any_satisfied", "answered"),
    "Abandonment": ("abandoned", "page"),
    "ZeroResults": ("empty", "page"),
    "AddToCart": ("any_cart", "page"),
    "CartsPerClick": ("cart", "clicks"),
    "Conversion": ("any_bought", "page"),
    "Latency": ("latency", "page"),
}


def estimates(page: pd.DataFrame) -> dict[str, list[float]]:
    """Give value and standard error of every metric, over all and by device."""
    columns = sorted({name for pair in METRICS.values() for name in pair})
    found: dict[str, list[float]] = {}
    by_device = page.groupby(["device", "user"], observed=True)[columns].sum()
    slices = {"all": page.groupby("user")[columns].sum()}
    slices |= {str(name): rows for name, rows in by_device.groupby(level="device", observed=True)}
    for name, users in slices.items():
        for metric, (top, bottom) in METRICS.items():
            found[f"{metric} {name}"] = list(delta(users[top].to_numpy(float), users[bottom].to_numpy(float)))
    return found


def delta(top: np.ndarray, bottom: np.ndarray) -> tuple[float, float]:
    """Give the ratio of sums and its standard error over users (Deng, Knoblich and Lu, KDD 2018)."""
    told = (top != 0) | (bottom != 0)
    top, bottom = top[told], bottom[told]
    value = top.sum() / bottom.sum()
    error = np.std(top - value * bottom, ddof=1) / (np.sqrt(len(top)) * bottom.mean())
    return float(value), float(error)


if __name__ == "__main__":
    main()
