"""Assets are plain functions: call them, or run the whole graph in this process, without a server."""

from __future__ import annotations

import pyarrow as pa
from shop import assets

from servo import materialize


def test_orders_count_once_and_need_an_amount() -> None:
    raw = [("1", 4.5), ("1", 4.5), ("2", None)]
    table = pa.table(
        {
            "order_id": [order for order, _ in raw],
            "product": ["tea"] * len(raw),
            "amount": pa.array([amount for _, amount in raw], pa.float64()),
        }
    )
    assert assets.clean_orders(table).to_pylist() == [{"order_id": "1", "product": "tea", "amount": 4.5}]


def test_a_day_from_the_tills_to_its_revenue() -> None:
    day = "day=d:2025-03-01"
    result = materialize([assets], partition=day)
    assert result.value(assets.daily_revenue, day).num_rows == len(assets.PRODUCTS)
