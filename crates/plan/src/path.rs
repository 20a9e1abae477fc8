//! Paths: ways to compute a relation, with their costs; and which of them are kept.

use std::rc::Rc;

use stegodon_format::ids::Oid;
use stegodon_nodes::Expr;
use stegodon_nodes::query::{JoinKind, SetOperationKind};

use crate::clause::Clause;
use crate::level::Level;
use crate::node::{AggregateSplit, AggregateStrategy, PrunePlan};
use crate::rel::{IndexInfo, Target};

/// One column of a sort order, in canonical form: equal orders have equal path keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathKey {
    /// The equivalence class, an index into the level's list, merged classes resolved.
    pub class: usize,
    /// The btree operator family.
    pub family: Oid,
    /// Descending.
    pub descending: bool,
    /// NULLs first.
    pub nulls_first: bool,
}

/// Costs of evaluating something: once, and for each row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QualCost {
    /// Once.
    pub startup: f64,
    /// Each row.
    pub per_tuple: f64,
}

impl std::ops::AddAssign for QualCost {
    fn add_assign(&mut self, other: Self) {
        self.startup += other.startup;
        self.per_tuple += other.per_tuple;
    }
}

/// A way to compute a relation.
#[derive(Clone)]
pub struct Path<'a> {
    pub kind: PathKind<'a>,
    pub target: Rc<Target>,
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
    pub disabled: u32,
    pub parallel_safe: bool,
    pub parallel_aware: bool,
    pub workers: usize,
    pub pathkeys: Vec<PathKey>,
}

/// An index path's own part.
#[derive(Clone)]
pub struct IndexPath {
    pub rti: usize,
    pub index: Rc<IndexInfo>,
    pub clauses: Rc<[IndexClause]>,
    pub backward: bool,
    pub index_only: bool,
    pub index_total: f64,
    pub selectivity: f64,
}

/// A restriction that an index scan can use, and how.
#[derive(Clone, Debug)]
pub struct IndexClause {
    /// The clause it came from.
    pub clause: Rc<Clause>,
    /// What the index is asked (index column on the left), with its btree strategy; 0 for NULL tests.
    pub quals: Vec<(Expr, u16)>,
    /// Whether `quals` are weaker than the clause.
    pub lossy: bool,
    /// The index column, from 0.
    pub column: usize,
}

/// A bitmap's making.
#[derive(Clone)]
pub enum Bitmap {
    Index(Rc<IndexPath>, f64),
    And(Vec<Rc<Bitmap>>, BitmapCost),
    Or(Vec<Rc<Bitmap>>, BitmapCost),
}

/// Cost and selectivity of a [`Bitmap`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BitmapCost {
    pub total: f64,
    pub selectivity: f64,
}

/// The join paths' own part.
#[derive(Clone)]
pub struct JoinPath<'a> {
    pub kind: JoinKind,
    pub outer: Rc<Path<'a>>,
    pub inner: Rc<Path<'a>>,
    /// What decides on a match, beside the clauses that hash or merge.
    pub clauses: Vec<Rc<Clause>>,
    /// What filters the result.
    pub filter: Vec<Rc<Clause>>,
    pub inner_unique: bool,
    /// LATERAL: what the inner side reads of each outer row, by executor slot.
    pub params: Vec<(u32, Expr)>,
}

/// An equality that hashes or merges, and whether its left side is the outer one.
#[derive(Clone)]
pub struct JoinEquality {
    pub clause: Rc<Clause>,
    pub left_is_outer: bool,
}

/// The paths, by their plan nodes.
#[derive(Clone)]
pub enum PathKind<'a> {
    /// No row needed; `filter` is constant.
    Result {
        child: Option<Rc<Path<'a>>>,
        filter: Vec<Expr>,
    },
    /// Never a row.
    Empty,
    SeqScan {
        rti: usize,
    },
    Index(Rc<IndexPath>),
    BitmapHeap {
        rti: usize,
        bitmap: Rc<Bitmap>,
    },
    Tid {
        rti: usize,
        clauses: Vec<Rc<Clause>>,
    },
    TidRange {
        rti: usize,
        clauses: Vec<Rc<Clause>>,
    },
    Subquery {
        rti: usize,
        level: Rc<Level<'a>>,
        child: Rc<Path<'a>>,
        /// What the target's columns are made of, where they are not the subquery's as they are.
        computed: Vec<Expr>,
    },
    /// The child's columns under the target's names, computed as these say.
    Retype {
        child: Rc<Path<'a>>,
        computed: Vec<Expr>,
    },
    Function {
        rti: usize,
    },
    Values {
        rti: usize,
    },
    Cte {
        rti: usize,
        subplan: usize,
        name: String,
    },
    Append {
        children: Vec<Rc<Path<'a>>>,
        prune: Option<PrunePlan>,
        removed: usize,
    },
    MergeAppend {
        children: Vec<Rc<Path<'a>>>,
        prune: Option<PrunePlan>,
    },
    NestLoop(JoinPath<'a>),
    Merge {
        join: JoinPath<'a>,
        merge: Vec<JoinEquality>,
    },
    Hash {
        join: JoinPath<'a>,
        hash: Vec<JoinEquality>,
    },
    Material {
        child: Rc<Path<'a>>,
    },
    /// `by_ref`: sort columns by `sort_group_ref` instead of by path keys.
    Sort {
        child: Rc<Path<'a>>,
        presorted: usize,
    },
    Aggregate {
        child: Rc<Path<'a>>,
        strategy: AggregateStrategy,
        split: AggregateSplit,
        groups: Vec<GroupColumn>,
        having: Vec<Expr>,
    },
    Group {
        child: Rc<Path<'a>>,
        groups: Vec<GroupColumn>,
        having: Vec<Expr>,
    },
    Unique {
        child: Rc<Path<'a>>,
        groups: Vec<GroupColumn>,
    },
    SetOp {
        outer: Rc<Path<'a>>,
        inner: Rc<Path<'a>>,
        kind: SetOperationKind,
        all: bool,
        groups: Vec<GroupColumn>,
    },
    Limit {
        child: Rc<Path<'a>>,
        offset: Option<Expr>,
        count: Option<Expr>,
        ties: Vec<GroupColumn>,
    },
    Gather {
        child: Rc<Path<'a>>,
        workers: usize,
    },
    GatherMerge {
        child: Rc<Path<'a>>,
        workers: usize,
    },
    Projection {
        child: Rc<Path<'a>>,
    },
    ProjectSet {
        child: Rc<Path<'a>>,
    },
    Window {
        child: Rc<Path<'a>>,
        window: Rc<crate::window::ActiveWindow>,
    },
}

/// A grouping column of an upper path.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupColumn {
    pub expr: Expr,
    pub equality: Oid,
}

impl<'a> Path<'a> {
    /// Whether the node can compute a target list.
    pub fn can_project(&self) -> bool {
        !matches!(
            self.kind,
            PathKind::Material { .. }
                | PathKind::Sort { .. }
                | PathKind::Unique { .. }
                | PathKind::SetOp { .. }
                | PathKind::Limit { .. }
                | PathKind::Append { .. }
                | PathKind::MergeAppend { .. }
                | PathKind::ProjectSet { .. }
                | PathKind::Empty
        )
    }

    /// The same path, computing another target (`create_projection_path`).
    pub fn projected(
        self: &Rc<Self>,
        target: &Rc<Target>,
        target_parallel_safe: bool,
        cpu_tuple_cost: f64,
    ) -> Rc<Path<'a>> {
        if let PathKind::Projection { child } = &self.kind {
            return child.projected(target, target_parallel_safe, cpu_tuple_cost);
        }
        let old = &self.target;
        let mut new = (**self).clone();
        new.target = Rc::clone(target);
        new.parallel_safe = self.parallel_safe && target_parallel_safe;
        let same = old.same_exprs(target);
        if same || self.can_project() {
            new.startup += target.cost.startup - old.cost.startup;
            new.total +=
                target.cost.startup - old.cost.startup + (target.cost.per_tuple - old.cost.per_tuple) * self.rows;
            return Rc::new(new);
        }
        new.startup = self.startup + target.cost.startup;
        new.total = self.total + target.cost.startup + (cpu_tuple_cost + target.cost.per_tuple) * self.rows;
        new.parallel_aware = false;
        new.kind = PathKind::Projection { child: Rc::clone(self) };
        Rc::new(new)
    }
}

/// How two orders relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysComparison {
    Equal,
    FirstBetter,
    SecondBetter,
    Different,
}

/// Which order contains the other.
pub fn compare_pathkeys(a: &[PathKey], b: &[PathKey]) -> KeysComparison {
    if a.iter().zip(b).any(|(x, y)| x != y) {
        return KeysComparison::Different;
    }
    match a.len().cmp(&b.len()) {
        std::cmp::Ordering::Equal => KeysComparison::Equal,
        std::cmp::Ordering::Greater => KeysComparison::FirstBetter,
        std::cmp::Ordering::Less => KeysComparison::SecondBetter,
    }
}

/// Whether rows in order `have` are also in order `want`.
pub fn contained_in(want: &[PathKey], have: &[PathKey]) -> bool {
    matches!(compare_pathkeys(want, have), KeysComparison::Equal | KeysComparison::SecondBetter)
}

/// How many leading keys of `want` the order `have` gives.
pub fn common_prefix(want: &[PathKey], have: &[PathKey]) -> usize {
    want.iter().zip(have).take_while(|(a, b)| a == b).count()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CostComparison {
    Equal,
    FirstBetter,
    SecondBetter,
    Different,
}

const STANDARD_FUZZ: f64 = 1.01;
const TINY_FUZZ: f64 = 1.000_000_000_1;

fn compare_fuzzily(a: &Path<'_>, b: &Path<'_>, fuzz: f64, consider_startup: bool) -> CostComparison {
    if a.disabled != b.disabled {
        return if a.disabled < b.disabled { CostComparison::FirstBetter } else { CostComparison::SecondBetter };
    }
    if a.total > b.total * fuzz {
        if consider_startup && b.startup > a.startup * fuzz {
            return CostComparison::Different;
        }
        return CostComparison::SecondBetter;
    }
    if b.total > a.total * fuzz {
        if consider_startup && a.startup > b.startup * fuzz {
            return CostComparison::Different;
        }
        return CostComparison::FirstBetter;
    }
    if a.startup > b.startup * fuzz {
        return CostComparison::SecondBetter;
    }
    if b.startup > a.startup * fuzz {
        return CostComparison::FirstBetter;
    }
    CostComparison::Equal
}

/// The paths worth keeping for one relation, cheapest total cost first.
#[derive(Clone, Default)]
pub struct PathList<'a> {
    pub paths: Vec<Rc<Path<'a>>>,
    pub partial: Vec<Rc<Path<'a>>>,
    /// Whether a cheap start matters (the query has a LIMIT or its like).
    pub consider_startup: bool,
}

impl<'a> PathList<'a> {
    pub fn new(consider_startup: bool) -> Self {
        Self { paths: Vec::new(), partial: Vec::new(), consider_startup }
    }

    /// Keeps `new` unless another is at least as good in every respect, and drops those that `new` beats so.
    pub fn add(&mut self, new: Path<'a>) {
        self.add_rc(Rc::new(new));
    }

    /// As [`PathList::add`].
    pub fn add_rc(&mut self, new: Rc<Path<'a>>) {
        use KeysComparison as K;
        let mut accept = true;
        let mut insert_at = 0;
        let mut i = 0;
        while let Some(old) = self.paths.get(i) {
            let mut remove_old = false;
            let costs = compare_fuzzily(&new, old, STANDARD_FUZZ, self.consider_startup);
            let keys = compare_pathkeys(&new.pathkeys, &old.pathkeys);
            let new_covers = new.rows <= old.rows && new.parallel_safe >= old.parallel_safe;
            let old_covers = old.rows <= new.rows && old.parallel_safe >= new.parallel_safe;
            if keys != K::Different {
                match costs {
                    CostComparison::Different => {}
                    CostComparison::Equal => match keys {
                        K::FirstBetter => remove_old = new_covers,
                        K::SecondBetter => accept = !old_covers,
                        _ => {
                            if new.parallel_safe != old.parallel_safe {
                                remove_old = new.parallel_safe;
                                accept = new.parallel_safe;
                            } else if new.rows != old.rows {
                                remove_old = new.rows < old.rows;
                                accept = new.rows < old.rows;
                            } else if compare_fuzzily(&new, old, TINY_FUZZ, self.consider_startup)
                                == CostComparison::FirstBetter
                            {
                                remove_old = true;
                            } else {
                                accept = false;
                            }
                        }
                    },
                    CostComparison::FirstBetter => remove_old = keys != K::SecondBetter && new_covers,
                    CostComparison::SecondBetter => accept = !(keys != K::FirstBetter && old_covers),
                }
            }
            if remove_old {
                self.paths.remove(i);
            } else {
                if new.disabled > old.disabled || (new.disabled == old.disabled && new.total >= old.total) {
                    insert_at = i + 1;
                }
                i += 1;
            }
            if !accept {
                return;
            }
        }
        self.paths.insert(insert_at.min(self.paths.len()), new);
    }

    /// As [`PathList::add`], for a path that workers share.
    pub fn add_partial(&mut self, new: Path<'a>) {
        self.add_partial_rc(Rc::new(new));
    }

    /// As [`PathList::add_partial`].
    pub fn add_partial_rc(&mut self, new: Rc<Path<'a>>) {
        use KeysComparison as K;
        let mut accept = true;
        let mut insert_at = 0;
        let mut i = 0;
        while let Some(old) = self.partial.get(i) {
            let mut remove_old = false;
            let keys = compare_pathkeys(&new.pathkeys, &old.pathkeys);
            if keys != K::Different {
                if new.disabled != old.disabled {
                    if new.disabled > old.disabled {
                        accept = keys == K::FirstBetter;
                    } else {
                        remove_old = keys != K::SecondBetter;
                    }
                } else if new.total > old.total * STANDARD_FUZZ {
                    accept = keys == K::FirstBetter;
                } else if old.total > new.total * STANDARD_FUZZ {
                    remove_old = keys != K::SecondBetter;
                } else if keys == K::FirstBetter {
                    remove_old = true;
                } else if keys == K::SecondBetter {
                    accept = false;
                } else if old.total > new.total * TINY_FUZZ {
                    remove_old = true;
                } else {
                    accept = false;
                }
            }
            if remove_old {
                self.partial.remove(i);
            } else {
                if new.disabled > old.disabled || (new.disabled == old.disabled && new.total >= old.total) {
                    insert_at = i + 1;
                }
                i += 1;
            }
            if !accept {
                return;
            }
        }
        self.partial.insert(insert_at.min(self.partial.len()), new);
    }

    /// The cheapest path for all rows; among equals the better sorted.
    pub fn cheapest_total(&self) -> Option<&Rc<Path<'a>>> {
        let mut best: Option<&Rc<Path<'a>>> = None;
        for path in &self.paths {
            let better = best.is_none_or(|b| match cost_key(path).partial_cmp(&cost_key(b)) {
                Some(std::cmp::Ordering::Less) => true,
                Some(std::cmp::Ordering::Equal) => {
                    compare_pathkeys(&b.pathkeys, &path.pathkeys) == KeysComparison::SecondBetter
                }
                _ => false,
            });
            if better {
                best = Some(path);
            }
        }
        best
    }
}

fn cost_key(p: &Path<'_>) -> (u32, f64, f64) {
    (p.disabled, p.total, p.startup)
}

/// Compares the costs of fetching a fraction of the rows.
pub fn compare_fractional(a: &Path<'_>, b: &Path<'_>, fraction: f64) -> std::cmp::Ordering {
    if fraction <= 0.0 || fraction >= 1.0 {
        return cost_key(a).partial_cmp(&cost_key(b)).unwrap_or(std::cmp::Ordering::Equal);
    }
    let cost = |p: &Path<'_>| p.startup + fraction * (p.total - p.startup);
    (a.disabled, cost(a)).partial_cmp(&(b.disabled, cost(b))).unwrap_or(std::cmp::Ordering::Equal)
}
