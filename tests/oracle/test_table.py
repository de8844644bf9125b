"""docs/checkpoints.md: its table speaks of every variant and of every oracle that can judge it."""

from __future__ import annotations

import pytest

import variant_oracles
import write_table
from closeness import BFLOAT16_RELATIVE, FLOAT32_AGAINST_FLOAT32
from head_variants import VARIANTS

pytestmark = pytest.mark.variants


def test_the_table_has_a_row_for_every_variant():
    rows = write_table.table_of(write_table.DOCUMENT.read_text())
    assert [row[0].strip("`") for row in rows] == list(VARIANTS)
    assert all(len(row) == len(write_table.COLUMNS) for row in rows)


def test_the_table_has_a_number_wherever_an_oracle_can_judge():
    for row in write_table.table_of(write_table.DOCUMENT.read_text()):
        plan = VARIANTS[row[0].strip("`")]
        assert row[1] == plan.layout
        for oracle, cell in zip(variant_oracles.THIRD_PARTIES, row[2:5], strict=True):
            if variant_oracles.judges(oracle, plan):
                assert float(cell) <= FLOAT32_AGAINST_FLOAT32, row
            else:
                assert cell == write_table.NOT_JUDGED, row
        assert float(row[5]) <= FLOAT32_AGAINST_FLOAT32
        assert float(row[6].removesuffix(" %")) <= 100 * BFLOAT16_RELATIVE
