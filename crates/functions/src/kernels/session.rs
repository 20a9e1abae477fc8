//! What the session knows: who, where and when.

use crate::EvalContext;
use crate::kernel::Entry;

/// The first schema of the search path that exists.
pub(crate) fn current_schema<'a>(cx: &EvalContext<'a>) -> Option<&'a str> {
    let path = cx.session.search_path();
    // The implicit places of pg_catalog and pg_temp at the front do not count; the session's path has pg_catalog first
    // unless it is named.
    let named = path.namespaces.iter().filter(|&&n| n != stegodon_catalog::lookup::PG_CATALOG);
    named.filter_map(|&n| cx.catalog.namespace(n)).map(|n| n.name.as_str()).next()
}

/// Under way.
pub(crate) static KERNELS: &[Entry] = &[];
