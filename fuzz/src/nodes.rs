//! Stored trees.

use stegodon_nodes::Expr;
use stegodon_nodes::reader::{read_expr, read_exprs, read_partition_bound, read_queries, read_view_query};

use crate::catalog::Types;

fn use_expr(expr: &Expr) {
    let _ = (expr.type_oid(), expr.typmod(), expr.collation());
    let mut count = 0_usize;
    expr.any(&mut |_| {
        count += 1;
        false
    });
}

pub fn run(data: &[u8]) {
    let [choice, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match choice % 4 {
        0 => {
            if let Ok(expr) = read_expr(text, &Types) {
                use_expr(&expr);
                assert_eq!(read_exprs(text, &Types).unwrap(), [expr]);
            }
        }
        1 => {
            if let Ok(exprs) = read_exprs(text, &Types) {
                exprs.iter().for_each(use_expr);
            }
        }
        2 => {
            if let Ok(bound) = read_partition_bound(text, &Types) {
                let _ = format!("{bound:?}");
            }
        }
        _ => {
            let _ = read_queries(text, &Types);
            if let Ok(query) = read_view_query(text, &Types) {
                let _ = query.outputs().count();
                let _ = query.try_each_expr(&mut |expr| {
                    use_expr(expr);
                    Ok::<(), ()>(())
                });
            }
        }
    }
}
