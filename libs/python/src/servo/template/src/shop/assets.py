"""A small shop: its daily orders are cleaned and become revenue."""

from __future__ import annotations

import random
from datetime import date

import duckdb
import pyarrow as pa

from servo import Context, Daily, Retry, asset, check, checks

DAYS = Daily("2025-01-01")
PRODUCTS = {"tea": 4.50, "coffee": 6.00, "cups": 12.00}


@asset(namespace="shop", partitions=DAYS, retry=Retry(attempts=3, delay="1s"), checks=[checks.row_count(at_least=1)])
def raw_orders(context: Context) -> pa.Table:
    """Orders of a day as the tills recorded them: some twice, some without an amount."""
    day = _day(context)
    # One till in three fails at the first call; the task is then retried.
    if day.toordinal() % 3 == 0 and context.attempt == 1:
        raise ConnectionError(f"the till of {day} hung up")
    orders = _orders(day)
    print(f"the tills wrote {len(orders)} lines on {day}")
    return pa.Table.from_pylist(orders)


@asset(
    namespace="shop",
    partitions=DAYS,
    checks=[
        checks.unique("order_id").on(severity="critical"),
        checks.not_null("amount").on(severity="critical"),
        checks.sql("SELECT * FROM output WHERE amount <= 0", name="amounts_are_positive"),
    ],
)
def clean_orders(raw_orders: pa.Table) -> pa.Table:
    """Each order once, without those that lack an amount."""
    query = "SELECT DISTINCT order_id, product, amount FROM raw_orders WHERE amount IS NOT NULL ORDER BY order_id"
    return _table(query, raw_orders=raw_orders)


@asset(namespace="shop", partitions=DAYS)
def daily_revenue(clean_orders: pa.Table, context: Context) -> pa.Table:
    """Revenue of a day by product."""
    query = f"""
        SELECT DATE '{_day(context)}' AS day, product, count(*) AS orders, round(sum(amount), 2) AS revenue
        FROM clean_orders GROUP BY product ORDER BY product
    """
    return _table(query, clean_orders=clean_orders)


@check(daily_revenue)
def sells_everything(revenue: pa.Table) -> bool:
    """Flags days on which a product was not sold."""
    return set(revenue["product"].to_pylist()) == set(PRODUCTS)


def _orders(day: date) -> list[dict[str, object]]:
    """The same orders for the same day, every time."""
    chance = random.Random(day.toordinal())
    orders: list[dict[str, object]] = []
    for number in range(chance.randint(80, 120)):
        product = chance.choice(list(PRODUCTS))
        amount = None if chance.random() < 0.05 else PRODUCTS[product] * chance.randint(1, 4)
        order: dict[str, object] = {"order_id": f"{day:%Y%m%d}-{number:04}", "product": product, "amount": amount}
        orders += [order, order] if chance.random() < 0.05 else [order]
    return orders


def _day(context: Context) -> date:
    day = context.partition["day"] if context.partition else None
    assert isinstance(day, date)
    return day


def _table(query: str, **tables: pa.Table) -> pa.Table:
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(query).to_arrow_table()
