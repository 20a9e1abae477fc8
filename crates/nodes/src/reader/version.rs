//! What differs between the stored trees of 15, 16, 17 and 18. Fields go by name, so an added field is only an optional
//! one; this module has the rest.
//!
//! | since | difference |
//! |---|---|
//! | 16 | some tags were spelled out (`RTE` → `RANGETBLENTRY`, `CASE` → `CASEEXPR`, …) |
//! | 16 | permissions moved from the range table entry into `RTEPERMISSIONINFO`; a view's query lost its two placeholder entries `old` and `new` |
//! | 16 | `Var::varnullingrels` |
//! | 17 | locations are written as -1 |
//! | 18 | `SortGroupClause::reverse_sort`; before, the ordering operator alone says it |
//! | 18 | range table entries of kind group; `Var::varreturningtype` |
//! | 18 | `RowCompareExpr::rctype` became `cmptype`, the numbers stayed |

/// The tag as 18 writes it.
pub(super) fn current_tag(tag: &str) -> &str {
    match tag {
        "RTE" => "RANGETBLENTRY",
        "CASE" => "CASEEXPR",
        "WHEN" => "CASEWHEN",
        "ARRAY" => "ARRAYEXPR",
        "ROW" => "ROWEXPR",
        "ROWCOMPARE" => "ROWCOMPAREEXPR",
        "COALESCE" => "COALESCEEXPR",
        "MINMAX" => "MINMAXEXPR",
        "COLLATE" => "COLLATEEXPR",
        tag => tag,
    }
}
