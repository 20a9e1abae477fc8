//! Which tuples of a page a checker sees.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]

use std::sync::Arc;

use stegodon_format::heap_tuple::HeapTupleRef;
use stegodon_format::ids::{BlockNumber, Tid};
use stegodon_format::page::Page;
use stegodon_txn::{Transactions, VisibilityChecker};

pub fn checker(transactions: &Arc<Transactions>) -> VisibilityChecker {
    VisibilityChecker::new(Arc::clone(transactions), Arc::new(transactions.snapshot()))
}

pub fn visible(page: &Page, checker: &mut VisibilityChecker) -> Vec<String> {
    let page = page.view();
    page.verify().unwrap();
    page.item_ids()
        .filter(|(_, id)| id.is_normal())
        .filter(|(offset, id)| {
            let tuple = HeapTupleRef::parse(page.item_at(*offset, *id).unwrap()).unwrap();
            checker.check(tuple).unwrap().is_visible()
        })
        .map(|(offset, _)| Tid::new(BlockNumber(0), offset).to_string())
        .collect()
}
