"""Monitoring of a running system: series against a frozen baseline, with a declared rate of false alarms."""

from __future__ import annotations

from judged.online.watch.config import WatchConfig, first_config, read_watch
from judged.online.watch.watch import Watch, watch

__all__ = ["Watch", "WatchConfig", "first_config", "read_watch", "watch"]
