"""A finished run in words: its verdict in a sentence, its main figures, and all of its settings."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import Any

from netsim.cost import load_profile
from netsim.network import PRESETS
from scenarios.formatting import (
    VERDICT_WORDS,
    format_bit_rate,
    format_bytes,
    format_count,
    format_duration,
    format_ms,
)
from scenarios.report.tables import Table
from scenarios.run import Report
from scenarios.run_json import collectors, latency_ms, versions
from scenarios.verdict import Verdict


def describe_verdict(verdict: Verdict) -> str:
    """Return in a sentence or two what came out, against what should have."""
    errors = [
        (verdict.missing, "missing"),
        (verdict.duplicate, "duplicate"),
        (verdict.expired, "outside the window"),
        (verdict.wrong, "not satisfying the query"),
    ]
    if not verdict.tested:
        text = "No pair was expected and none came out: exactness was not tested."
    elif verdict.exact:
        text = f"Exactly the {verdict.expected:,} expected pairs came out, each once."
    else:
        listed = ", ".join(f"{count:,} {kind}" for count, kind in errors if count)
        text = f"{verdict.expected:,} pairs were expected, {verdict.produced:,} came out: {listed}."
    if not verdict.claims_exact:
        text += " This system makes no claim to exactness."
    failed = [check.name for check in verdict.checks if check.passed is False]
    if failed:
        text += f" Failed: {', '.join(failed)}."
    if verdict.late:
        text += f" {verdict.late:,} late tuples were dropped."
    return text


def summary_rows(report: Report) -> list[tuple[str, str]]:
    """Return the run's main figures, as names and values."""
    outcome, clock = report.outcome, report.plan.config.clock
    seconds = outcome.virtual_ns / 1e9
    latency = "  ".join(f"{name} {format_ms(ms)}" for name, ms in latency_ms(report).items())
    rate_tps = outcome.tuples / seconds if seconds else 0
    rows = [
        ("tuples", f"{outcome.tuples:,} in {seconds:,.4g} {clock} seconds"),
        ("throughput", f"{rate_tps:,.0f} tuples/s ({clock})"),
        ("latency", f"{latency}  ms ({clock})"),
        ("network", f"{outcome.messages:,} messages, {format_bytes(outcome.nbytes)}"),
    ]
    collected = collectors(report)
    if collected["delay_ms"]:
        waited = f"at most {format_count(collected['most_tuples'])} tuples waited in one of them"
        mean, longest = format_ms(collected["delay_ms"]), format_ms(collected["longest_ms"])
        each = f"each tuple {mean} ms on average, at most {longest}"
        rows.append(("collectors", f"{waited}, {each}"))
    rows.append(("wall time", f"{report.wall_seconds:,.2f} s"))
    rows.append(("peak memory", format_bytes(report.memory_bytes)))
    return rows


def summary_text(report: Report) -> str:
    """Return a run as a few lines of plain text: its verdict and main figures."""
    rows = summary_rows(report)
    width = max(len(name) for name, _ in rows)
    verdict = f"{VERDICT_WORDS[report.verdict.passed]}: {describe_verdict(report.verdict)}"
    config = report.plan.config
    opening = f"{config.name} on {config.topology}, seed {config.seed}"
    return "\n".join([opening, verdict, *(f"{name:<{width}}  {text}" for name, text in rows)])


def summary_html(report: Report) -> str:
    """Return a run as a few lines of HTML for a notebook: what ran, its verdict, main figures."""
    config, verdict = report.plan.config, report.verdict
    word = VERDICT_WORDS[verdict.passed]
    return (
        f"<p><b>{escape(config.name)}</b> on {escape(config.topology)}, seed {config.seed}, "
        f"{config.backend} backend, {config.clock} clock<br>"
        f"<b>{word}</b>: {escape(describe_verdict(verdict))}</p>\n"
        f"{Table(columns=(), rows=summary_rows(report)).html()}"
    )


def settings_tables(report: Report) -> list[Table]:
    """Return everything that was set for a run, by title."""
    config = report.plan.config
    feeding: dict[str, Any] = {
        "batch_rows": f"{config.feeding.batch_rows:,} tuples a message",
        "rate_tps": f"{config.feeding.rate_tps:,} tuples/s"
        if config.feeding.rate_tps
        else "as fast as the system takes them",
    }
    if config.feeding.disorder:
        bound = "at most" if config.feeding.bounded else "on average"
        feeding["disorder"] = f"{bound} {format_duration(config.feeding.disorder)}"
    if config.feeding.watermark_lag is not None:
        feeding["watermark_lag"] = format_duration(config.feeding.watermark_lag)
    costs = {
        name: f"{value:,} ps" if isinstance(value, int) else value
        for name, value in asdict(load_profile(config.profile)).items()
    }
    run: dict[str, Any] = {
        "seed": config.seed,
        "backend": config.backend,
        "processes": config.processes,
    }
    run |= {"pairs": config.pairs, "rows": config.rows or "all"} | config.bind
    titles = {"Run": run, "Parameters": asdict(report.plan.parameters), "Feeding": feeding}
    if config.clock == "virtual":
        titles |= {"Network": _network(report), "Cost profile": costs}
    else:  # of the network only the inboxes are not the machine's own
        titles["Network"] = {"inbox_messages": config.network.inbox_messages}
    titles["Versions"] = versions()
    return [
        Table(
            title=title, columns=(), rows=[(key, _setting(value)) for key, value in values.items()]
        )
        for title, values in titles.items()
    ]


def _network(report: Report) -> dict[str, Any]:
    network = report.plan.config.network
    link = PRESETS[network.preset]
    preset = f"{format_duration(link.latency.mean_ns)}, {format_bit_rate(link.bandwidth_bps)}"
    values: dict[str, Any] = {"preset": f"{network.preset} ({link.latency.kind} {preset})"}
    values |= _link(network.latency, network.jitter, network.bandwidth)
    if network.latency_kind:
        values["latency_kind"] = network.latency_kind
    if not network.mesh:
        values["links"] = "only those named"
    values |= {"cores": f"{network.cores} a site", "inbox_messages": network.inbox_messages}
    for one in network.links:
        differs = _link(one.latency, one.jitter, one.bandwidth)
        values[f"{one.a} - {one.b}"] = ", ".join(f"{k} {v}" for k, v in differs.items())
    return values


def _link(latency_ns: int | None, jitter_ns: int | None, bps: int | None) -> dict[str, str]:
    values = {}
    if latency_ns is not None:
        values["latency"] = format_duration(latency_ns)
    if jitter_ns is not None:
        values["jitter"] = format_duration(jitter_ns)
    if bps is not None:
        values["bandwidth"] = format_bit_rate(bps)
    return values


def _setting(value: object) -> str:
    if value is None:
        return "by default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
