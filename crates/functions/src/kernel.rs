//! What a kernel is, and the table of them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use stegodon_types::{Collation, Layout, Oid, SqlResult, TypeDesc};

use crate::{Column, EvalContext};

/// What is known of a call once it is compiled.
#[derive(Debug)]
pub struct CallInfo {
    /// `pg_proc` OID.
    pub function: Oid,
    /// The collation that the inputs give it.
    pub collation: Collation,
    /// Its OID.
    pub input_collation: Oid,
    /// The arguments' types, polymorphism resolved.
    pub arg_types: Vec<Arc<TypeDesc>>,
    /// The result's type, polymorphism resolved.
    pub result_type: Arc<TypeDesc>,
    /// The result's layout.
    pub layout: Layout,
    /// Of each argument that is a record written as `ROW(…)`, its columns' names.
    pub row_names: Vec<Option<Vec<String>>>,
    /// Whether the last argument is a VARIADIC array as written.
    pub variadic: bool,
}

/// One call over one batch.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// What the kernel may ask.
    pub cx: &'a EvalContext<'a>,
    /// The call.
    pub info: &'a CallInfo,
    /// The arguments' values.
    pub args: &'a [Column],
    /// How many rows.
    pub rows: usize,
}

/// Computes a function for every row of a batch. Called with at least one row. Where every argument is a
/// [`Column::Const`] and the function is not volatile, it is called for one row and the result stands for all.
pub type KernelFn = fn(&Call<'_>) -> SqlResult<Column>;

/// One row of a kernel table: `pg_proc` OID and kernel.
pub type Entry = (u32, KernelFn);

static KERNELS: LazyLock<HashMap<u32, KernelFn>> = LazyLock::new(|| {
    let mut map = HashMap::new();
    for family in crate::kernels::FAMILIES.iter().flat_map(|f| f.iter()) {
        for &(oid, kernel) in *family {
            let other = map.insert(oid, kernel);
            debug_assert!(other.is_none(), "two kernels for function {oid}");
        }
    }
    map
});

/// The kernel of a function.
pub(crate) fn kernel(function: Oid) -> Option<KernelFn> {
    KERNELS.get(&function.0).copied()
}

/// Whether there is a kernel for a function.
pub fn kernel_exists(function: Oid) -> bool {
    KERNELS.contains_key(&function.0)
}

/// The functions that there are kernels for.
pub fn kernel_oids() -> Vec<Oid> {
    let mut oids: Vec<Oid> = KERNELS.keys().map(|&o| Oid(o)).collect();
    oids.sort_unstable();
    oids
}
