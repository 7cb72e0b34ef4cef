"""``servo quota``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from . import show
from .commands import Argument, Group, Option
from .run import Comment
from .server import Server, with_server
from .show import AsJson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.timestamp_pb2 import Timestamp

    from servo.v1 import quota_model_pb2, quota_pb2

Settings = Annotated[list[str], Argument(help="limit=number, or limit=default; `servo quota show` names them.")]
PoolName = Annotated[str, Argument(help="The pool.")]
PoolSlots = Annotated[int, Argument(min=0, help="Tasks at the same time; 0 stops.")]
Description = Annotated[str, Option(help="The resource that the pool protects.")]
Days = Annotated[int, Option(min=1, help="How many days back.")]
Grain = Annotated[str, Option(help="A line per hour, day or month, or one for the total.")]
By = Annotated[
    list[str] | None, Option("--by", help="Lines of their own by workspace, asset or pool; may be repeated.")
]
CostsBy = Annotated[
    list[str] | None,
    Option("--by", help="Lines of their own by workspace, asset, run or backfill; may be repeated."),
]

_MICROS = 1_000_000
# The usage of a limit has the limit's name without "max_", except for this one.
_USED_OF = {"max_backfill_concurrency": "backfill_runs"}

quota_app = Group()


@quota_app.add("show")
@with_server
def show_command(server: Server, as_json: AsJson = False) -> None:
    """Show the tenant's effective limits and their usage."""
    from servo.v1 import quota_pb2

    with server.client() as client:
        answer = client.quota.GetQuota(quota_pb2.GetQuotaRequest(tenant=server.tenant))
    if as_json:
        return show.print_json(_with_usage(answer))
    rows = []
    for field in answer.effective.DESCRIPTOR.fields:
        own = "set" if answer.limits.HasField(field.name) else "default"
        rows.append([field.name, _used(answer, field.name) + _limit_text(answer.effective, field.name), own])
    return show.print_table(["LIMIT", "USED / HOLDS", ""], rows)


@quota_app.add("set")
@with_server
def set_command(server: Server, settings: Settings, comment: Comment = "", as_json: AsJson = False) -> None:
    """Change limits of the tenant; limits that are not named stay."""
    from servo.v1 import quota_pb2

    with server.client() as client:
        before = client.quota.GetQuota(quota_pb2.GetQuotaRequest(tenant=server.tenant))
        for setting in settings:
            _apply(before.limits, setting)
        # `expected_version` makes the update fail if somebody else changed the limits in the
        # meantime.
        answer = client.quota.UpdateQuota(
            quota_pb2.UpdateQuotaRequest(
                tenant=server.tenant, limits=before.limits, expected_version=before.version, comment=comment
            )
        )
    if as_json:
        return show.print_message(answer)
    return click.echo(f"version {answer.version} of the limits holds")


@quota_app.add("pools")
@with_server
def pools_command(server: Server, as_json: AsJson = False) -> None:
    """List the tenant's pools."""
    from servo.client.pages import pages
    from servo.v1 import quota_pb2

    with server.client() as client:
        pools = list(pages(client.quota.ListPools, quota_pb2.ListPoolsRequest(tenant=server.tenant)))
    if as_json:
        return show.print_json([_pool(each) for each in pools])
    rows = [[each.pool, _slots_text(each), each.description] for each in pools]
    return show.print_table(["POOL", "USED / SLOTS", "WHAT FOR"], rows)


@quota_app.add("pool")
@with_server
def pool_command(server: Server, pool: PoolName, as_json: AsJson = False) -> None:
    """List the holders of a pool's slots, longest first."""
    from servo.v1 import quota_pb2

    with server.client() as client:
        answer = client.quota.GetPool(quota_pb2.GetPoolRequest(tenant=server.tenant, pool=pool))
    if as_json:
        return show.print_json({**show.as_dict(answer), "pool": _pool(answer.pool)})
    click.echo(f"{pool}: {_slots_text(answer.pool)} slots used")
    if not answer.holders:
        return None
    rows = [[each.workspace, each.run_id, each.task_id, show.when(each.since_time)] for each in answer.holders]
    return show.print_table(["WORKSPACE", "RUN", "TASK", "SINCE"], rows)


@quota_app.add("set-pool")
@with_server
def set_pool_command(
    server: Server,
    pool: PoolName,
    slots: PoolSlots,
    description: Description = "",
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Create or change a pool."""
    from servo.client.errors import NotFound
    from servo.v1 import quota_model_pb2, quota_pb2

    with server.client() as client:
        try:
            before = client.quota.GetPool(quota_pb2.GetPoolRequest(tenant=server.tenant, pool=pool)).pool
        except NotFound:
            new = quota_model_pb2.Pool(pool=pool, slots=slots, description=description)
            request = quota_pb2.CreatePoolRequest(tenant=server.tenant, pool=new, comment=comment)
            made = client.quota.CreatePool(request).pool
        else:
            change = quota_pb2.UpdatePoolRequest(
                tenant=server.tenant,
                pool=pool,
                slots=slots,
                description=description or before.description,
                expected_version=before.version,
                comment=comment,
            )
            made = client.quota.UpdatePool(change).pool
    if as_json:
        return show.print_message(made)
    return click.echo(f"{made.pool} has {show.counted(made.slots, 'slot')}")


@quota_app.add("delete-pool")
@with_server
def delete_pool_command(server: Server, pool: PoolName, comment: Comment = "", as_json: AsJson = False) -> None:
    """Delete a pool; tasks that name it are no longer limited by it."""
    from servo.v1 import quota_pb2

    with server.client() as client:
        request = quota_pb2.DeletePoolRequest(tenant=server.tenant, pool=pool, comment=comment)
        answer = client.quota.DeletePool(request)
    return show.print_message(answer) if as_json else click.echo(f"{pool} is gone")


@quota_app.add("usage")
@with_server
def usage_command(server: Server, days: Days = 7, grain: Grain = "day", by: By = None, as_json: AsJson = False) -> None:
    """Show usage: attempts, time in slots, processor time and bytes."""
    from servo.client.pages import pages
    from servo.v1 import quota_pb2

    request = quota_pb2.ListUsageRequest(
        tenant=server.tenant, start_time=_since(days), grain=_grain(grain), group_by=by or ()
    )
    with server.client() as client:
        lines = list(pages(client.quota.ListUsage, request))
    if as_json:
        return show.print_list(lines)
    rows = [
        [
            show.when(line.start_time),
            _group(line.group),
            str(line.attempts),
            show.seconds(line.slot_ms / 1000),
            show.seconds(line.usage.cpu_ms / 1000),
            f"{line.usage.written_bytes:,}",
        ]
        for line in lines
    ]
    return show.print_table(["FROM", "WHAT", "ATTEMPTS", "IN SLOTS", "PROCESSOR", "BYTES WRITTEN"], rows)


@quota_app.add("costs")
@with_server
def costs_command(
    server: Server, days: Days = 30, grain: Grain = "day", by: CostsBy = None, as_json: AsJson = False
) -> None:
    """Show costs by the tenant's prices."""
    from servo.client.pages import pages
    from servo.v1 import quota_pb2

    request = quota_pb2.GetCostsRequest(
        tenant=server.tenant, start_time=_since(days), grain=_grain(grain), group_by=by or ()
    )
    with server.client() as client:
        lines = list(pages(client.quota.GetCosts, request))
        currency = client.quota.GetPrices(quota_pb2.GetPricesRequest(tenant=server.tenant)).prices.currency
    if as_json:
        return show.print_list(lines)
    rows = [[show.when(line.start_time), _group(line.group), f"{line.total_micros / _MICROS:,.2f}"] for line in lines]
    return show.print_table(["FROM", "WHAT", currency or "COST"], rows)


@quota_app.add("budgets")
@with_server
def budgets_command(server: Server, as_json: AsJson = False) -> None:
    """List the tenant's budgets and what is spent of them."""
    from servo.client.pages import pages
    from servo.v1 import quota_model_pb2, quota_pb2

    with server.client() as client:
        budgets = list(pages(client.quota.ListBudgets, quota_pb2.ListBudgetsRequest(tenant=server.tenant)))
    if as_json:
        return show.print_list(budgets)
    rows = [
        [
            each.name,
            each.workspace or "all",
            f"{each.spent_micros / _MICROS:,.2f} of {each.limit_micros / _MICROS:,.2f} {each.currency}",
            quota_model_pb2.BudgetAction.Name(each.action).removeprefix("BUDGET_ACTION_"),
        ]
        for each in budgets
    ]
    return show.print_table(["BUDGET", "WORKSPACE", "SPENT", "THEN"], rows)


def _apply(limits: quota_model_pb2.QuotaLimits, setting: str) -> None:
    from servo.define.durations import read_duration
    from servo.errors import InvalidValue
    from servo.model.suggestions import did_you_mean

    name, _, value = setting.partition("=")
    known = [field.name for field in limits.DESCRIPTOR.fields]
    if name not in known:
        raise InvalidValue(f"there is no limit `{name}`{did_you_mean(name, known)}; `servo quota show` names all")
    if value == "default":
        limits.ClearField(name)
    elif name == "max_run_duration":
        limits.max_run_duration.FromTimedelta(read_duration(value))
    elif value.isdecimal() and int(value) < 2**32:
        setattr(limits, name, int(value))
    else:
        raise InvalidValue(f"`{setting}` sets no limit: write {name}=number or {name}=default")


def _with_usage(answer: quota_pb2.GetQuotaResponse) -> Any:
    """Zeros are included, so that a missing number means that it is unknown."""
    answer_dict = show.as_dict(answer)
    if answer.HasField("used"):
        answer_dict["used"] = {field.name: getattr(answer.used, field.name) for field in answer.used.DESCRIPTOR.fields}
    return answer_dict


def _pool(pool: quota_model_pb2.Pool) -> Any:
    pool_dict = show.as_dict(pool)
    return pool_dict if pool.use_unknown else {**pool_dict, "used_slots": pool.used_slots}


def _slots_text(pool: quota_model_pb2.Pool) -> str:
    return f"{'?' if pool.use_unknown else pool.used_slots} / {pool.slots}"


def _used(answer: quota_pb2.GetQuotaResponse, name: str) -> str:
    """The usage of a limit as a prefix; empty if it is not counted."""
    counted = _USED_OF.get(name, name.removeprefix("max_"))
    if counted not in answer.used.DESCRIPTOR.fields_by_name:
        return ""
    return f"{getattr(answer.used, counted)} / " if answer.HasField("used") else "? / "


def _limit_text(limits: quota_model_pb2.QuotaLimits, name: str) -> str:
    if not limits.HasField(name):
        return "no cap"
    value: Any = getattr(limits, name)
    # "No cap" is encoded as the largest number.
    return str(value.ToTimedelta()) if name == "max_run_duration" else "no cap" if value == 2**32 - 1 else str(value)


def _since(days: int) -> Timestamp:
    import time

    from google.protobuf.timestamp_pb2 import Timestamp

    return Timestamp(seconds=int(time.time()) - days * 86_400)


def _grain(given: str) -> str:
    from servo.errors import InvalidValue

    if given not in ("total", "hour", "day", "month"):
        raise InvalidValue(f"--grain `{given}` is unknown: write hour, day, month or total")
    return f"REPORT_GRAIN_{given.upper()}"


def _group(group: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(group.items())) or "all"
