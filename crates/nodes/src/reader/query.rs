//! Queries and what only they hold.

use stegodon_types::{SqlError, SqlResult};

use super::fields::Fields;
use super::token::{Node, Value, damaged};
use super::{Reader, tag_of, unsupported_node};
use crate::expr::Expr;
use crate::grouping::{GroupingSet, expand_grouping_sets};
use crate::levels::replace_group_vars;
use crate::query::*;

/// The SELECT bit of `requiredPerms`.
const ACL_SELECT: i64 = 1 << 1;

/// One `RTEPermissionInfo`, or the same fields of a range table entry before 16.
#[derive(Clone, Default)]
struct Permissions {
    check_as_user: Option<stegodon_format::ids::Oid>,
    selected: Vec<stegodon_format::ids::AttrNumber>,
    select: bool,
}

fn join_kind(number: i64) -> SqlResult<JoinKind> {
    Ok(match number {
        0 => JoinKind::Inner,
        1 => JoinKind::Left,
        2 => JoinKind::Full,
        3 => JoinKind::Right,
        other => return Err(unsupported_node(&format!("join of type {other}"))),
    })
}

impl Reader<'_> {
    /// A SELECT.
    pub(super) fn query(&self, node: Node) -> SqlResult<Query> {
        self.deeper(|| self.query_here(node))
    }

    fn query_here(&self, node: Node) -> SqlResult<Query> {
        if node.tag != "QUERY" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let command = f.int("commandType")?;
        if command != 1 {
            return Err(SqlError::unsupported(format!("a stored query of command type {command}")));
        }
        for name in [
            "utilityStmt",
            "resultRelation",
            "hasModifyingCTE",
            "hasRowSecurity",
            "mergeActionList",
            "mergeTargetRelation",
            "mergeJoinCondition",
            "mergeUseOuterJoin",
            "override",
            "onConflict",
            "returningList",
            "withCheckOptions",
        ] {
            f.refuse(name)?;
        }
        f.skip(&[
            "querySource",
            "queryId",
            "canSetTag",
            "hasRecursive",
            "hasForUpdate",
            "hasGroupRTE",
            "isReturn",
            "returningOldAlias",
            "returningNewAlias",
            "constraintDeps",
            "stmt_location",
            "stmt_len",
        ]);
        let permissions = match f.take_opt("rteperminfos") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::List(items)) => items.into_iter().map(Self::permissions).collect::<SqlResult<_>>()?,
            Some(_) => return Err(damaged("rteperminfos of QUERY")),
        };
        let range_table = f
            .nodes("rtable")?
            .into_iter()
            .map(|node| self.range_table_entry(node, &permissions))
            .collect::<SqlResult<_>>()?;
        let jointree = f.node("jointree")?.ok_or_else(|| damaged("QUERY without a jointree"))?;
        let from = self.read_from(jointree)?;
        let group_distinct = f.bool("groupDistinct")?;
        let sets = f.nodes("groupingSets")?.into_iter().map(|n| self.grouping_set(n)).collect::<SqlResult<Vec<_>>>()?;
        let distinct_on = f.bool("hasDistinctOn")?;
        let mut query = Query {
            range_table,
            from,
            targets: self.targets(f.nodes("targetList")?)?,
            group_by: self.sort_clauses(f.nodes("groupClause")?)?,
            group_distinct,
            grouping_sets: expand_grouping_sets(&sets, group_distinct)?,
            having: self.optional(&mut f, "havingQual")?,
            windows: f.nodes("windowClause")?.into_iter().map(|n| self.window(n)).collect::<SqlResult<_>>()?,
            distinct: self.sort_clauses(f.nodes("distinctClause")?)?,
            distinct_on,
            order_by: self.sort_clauses(f.nodes("sortClause")?)?,
            offset: self.optional(&mut f, "limitOffset")?,
            limit: self.optional(&mut f, "limitCount")?,
            with_ties: match f.int("limitOption")? {
                0 => false,
                1 => true,
                other => return Err(damaged(format!("limitOption {other}"))),
            },
            ctes: f.nodes("cteList")?.into_iter().map(|n| self.cte(n)).collect::<SqlResult<_>>()?,
            set_operations: f.node("setOperations")?.map(|n| self.set_operation(n)).transpose()?,
            row_marks: f.nodes("rowMarks")?.into_iter().map(Self::row_mark).collect::<SqlResult<_>>()?,
            has_aggregates: f.bool("hasAggs")?,
            has_window_functions: f.bool("hasWindowFuncs")?,
            has_target_srfs: f.bool("hasTargetSRFs")?,
            has_sublinks: f.bool("hasSubLinks")?,
        };
        f.end()?;
        replace_group_vars(&mut query)?;
        Ok(query)
    }

    fn permissions(value: Value) -> SqlResult<Permissions> {
        let Value::Node(node) = value else { return Err(damaged("rteperminfos of QUERY")) };
        if node.tag != "RTEPERMISSIONINFO" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let permissions = Self::permission_fields(&mut f)?;
        f.skip(&["relid", "inh"]);
        f.end()?;
        Ok(permissions)
    }

    fn permission_fields(f: &mut Fields) -> SqlResult<Permissions> {
        let required = f.int("requiredPerms")?;
        let user = f.oid("checkAsUser")?;
        let selected = Self::attributes_of_bitmap(f.bitmap("selectedCols")?)?;
        f.skip(&["insertedCols", "updatedCols", "extraUpdatedCols"]);
        Ok(Permissions { check_as_user: user.is_valid().then_some(user), selected, select: required & ACL_SELECT != 0 })
    }

    fn alias(node: Node) -> SqlResult<(String, Vec<String>)> {
        if node.tag != "ALIAS" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let alias = (f.string("aliasname")?.unwrap_or_default(), f.strings("colnames")?);
        f.end()?;
        Ok(alias)
    }

    fn range_table_entry(&self, node: Node, infos: &[Permissions]) -> SqlResult<RangeTableEntry> {
        let tag = tag_of(&node);
        if tag != "RANGETBLENTRY" {
            return Err(unsupported_node(&tag));
        }
        let mut f = Fields::new(node);
        let has_alias = f.node("alias")?.is_some();
        let eref = f.node("eref")?.ok_or_else(|| damaged("RANGETBLENTRY without names"))?;
        let (name, columns) = Self::alias(eref)?;
        let number = f.int("rtekind")?;
        let permissions = if f.has("requiredPerms") {
            Self::permission_fields(&mut f)?
        } else {
            match if f.has("perminfoindex") { f.index("perminfoindex")? } else { 0 } {
                0 => Permissions::default(),
                n => infos.get(n - 1).cloned().ok_or_else(|| damaged("perminfoindex out of range"))?,
            }
        };
        let mut security_barrier = false;
        let kind = match number {
            0 => RangeTableKind::Relation {
                relation: f.oid("relid")?,
                relkind: f.char("relkind")?,
                inherit: f.bool("inh")?,
                sample: f.node("tablesample")?.map(|n| self.table_sample(n).map(Box::new)).transpose()?,
            },
            1 => {
                f.refuse("relid")?;
                security_barrier = f.bool("security_barrier")?;
                let query = f.node("subquery")?.ok_or_else(|| damaged("RANGETBLENTRY without its subquery"))?;
                f.skip(&["relkind"]);
                RangeTableKind::Subquery(Box::new(self.query(query)?))
            }
            2 => {
                let kind = join_kind(f.int("jointype")?)?;
                let merged_columns = f.index("joinmergedcols")?;
                let alias_vars = self.expr_list(&mut f, "joinaliasvars")?;
                f.skip(&["joinleftcols", "joinrightcols", "join_using_alias"]);
                RangeTableKind::Join { kind, alias_vars, merged_columns }
            }
            3 => RangeTableKind::Function {
                functions: f
                    .nodes("functions")?
                    .into_iter()
                    .map(|n| self.range_table_function(n))
                    .collect::<SqlResult<_>>()?,
                ordinality: f.bool("funcordinality")?,
            },
            5 => {
                let rows = f
                    .list("values_lists")?
                    .into_iter()
                    .map(|row| match row {
                        Value::List(items) => self.exprs(items),
                        _ => Err(damaged("a row of VALUES is not a list")),
                    })
                    .collect::<SqlResult<_>>()?;
                RangeTableKind::Values { rows, types: Self::rte_types(&mut f)? }
            }
            6 => RangeTableKind::Cte {
                name: f.string("ctename")?.ok_or_else(|| damaged("RANGETBLENTRY without ctename"))?,
                levels_up: f.u32("ctelevelsup")?,
                self_reference: f.bool("self_reference")?,
                types: Self::rte_types(&mut f)?,
            },
            8 => RangeTableKind::Result,
            9 => RangeTableKind::Group { exprs: self.expr_list(&mut f, "groupexprs")? },
            4 => return Err(SqlError::unsupported("XMLTABLE or JSON_TABLE in a stored query")),
            other => return Err(unsupported_node(&format!("RANGETBLENTRY of kind {other}"))),
        };
        let lateral = f.bool("lateral")?;
        f.refuse("securityQuals")?;
        f.skip(&["inh", "inFromCl", "rellockmode"]);
        f.end()?;
        Ok(RangeTableEntry {
            kind,
            name,
            has_alias,
            columns,
            lateral,
            check_as_user: permissions.check_as_user,
            selected_columns: permissions.selected,
            requires_select: permissions.select,
            security_barrier,
        })
    }

    fn rte_types(f: &mut Fields) -> SqlResult<Vec<(stegodon_format::ids::Oid, i32, stegodon_format::ids::Oid)>> {
        Self::column_types(f.oids("coltypes")?, f.ints("coltypmods")?, f.oids("colcollations")?)
    }

    fn table_sample(&self, node: Node) -> SqlResult<TableSample> {
        if node.tag != "TABLESAMPLECLAUSE" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let sample = TableSample {
            method: f.oid("tsmhandler")?,
            args: self.expr_list(&mut f, "args")?,
            repeatable: self.optional(&mut f, "repeatable")?,
        };
        f.end()?;
        Ok(sample)
    }

    fn range_table_function(&self, node: Node) -> SqlResult<RangeTableFunction> {
        if node.tag != "RANGETBLFUNCTION" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let call = self.required(&mut f, "funcexpr")?;
        let names = f.strings("funccolnames")?;
        let types =
            Self::column_types(f.oids("funccoltypes")?, f.ints("funccoltypmods")?, f.oids("funccolcollations")?)?;
        if names.len() != types.len() {
            return Err(damaged("lists of column types of unequal lengths"));
        }
        f.skip(&["funccolcount", "funcparams"]);
        f.end()?;
        let columns = names.into_iter().zip(types).map(|(n, (t, m, c))| (n, t, m, c)).collect();
        Ok(RangeTableFunction { call, columns })
    }

    fn read_from(&self, node: Node) -> SqlResult<FromExpr> {
        if node.tag != "FROMEXPR" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let items = f.nodes("fromlist")?.into_iter().map(|n| self.join_tree(n)).collect::<SqlResult<_>>()?;
        let quals = self.optional(&mut f, "quals")?;
        f.end()?;
        Ok(FromExpr { items, quals })
    }

    fn join_tree(&self, node: Node) -> SqlResult<JoinTree> {
        self.deeper(|| match node.tag.as_str() {
            "RANGETBLREF" => Self::range_table_ref(node).map(JoinTree::Relation),
            "FROMEXPR" => Ok(JoinTree::From(Box::new(self.read_from(node)?))),
            "JOINEXPR" => {
                let mut f = Fields::new(node);
                let missing = || damaged("JOINEXPR without a side");
                let join = JoinExpr {
                    kind: join_kind(f.int("jointype")?)?,
                    left: self.join_tree(f.node("larg")?.ok_or_else(missing)?)?,
                    right: self.join_tree(f.node("rarg")?.ok_or_else(missing)?)?,
                    quals: self.optional(&mut f, "quals")?,
                    relation: f.index("rtindex")?,
                };
                f.skip(&["isNatural", "usingClause", "join_using_alias", "alias"]);
                f.end()?;
                Ok(JoinTree::Join(Box::new(join)))
            }
            other => Err(unsupported_node(other)),
        })
    }

    fn range_table_ref(node: Node) -> SqlResult<usize> {
        if node.tag != "RANGETBLREF" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let index = f.index("rtindex")?;
        f.end()?;
        if index == 0 { Err(damaged("rtindex 0")) } else { Ok(index) }
    }

    fn grouping_set(&self, node: Node) -> SqlResult<GroupingSet> {
        if node.tag != "GROUPINGSET" {
            return Err(unsupported_node(&node.tag));
        }
        self.deeper(|| {
            let mut f = Fields::new(node);
            let kind = f.int("kind")?;
            let set = match kind {
                0 => {
                    f.refuse("content")?;
                    GroupingSet::Empty
                }
                1 => GroupingSet::Simple(f.ints("content")?),
                2..=4 => {
                    let parts =
                        f.nodes("content")?.into_iter().map(|n| self.grouping_set(n)).collect::<SqlResult<_>>()?;
                    match kind {
                        2 => GroupingSet::Rollup(parts),
                        3 => GroupingSet::Cube(parts),
                        _ => GroupingSet::Sets(parts),
                    }
                }
                other => return Err(damaged(format!("grouping set of kind {other}"))),
            };
            f.skip(&["location"]);
            f.end()?;
            Ok(set)
        })
    }

    fn window(&self, node: Node) -> SqlResult<WindowClause> {
        if node.tag != "WINDOWCLAUSE" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let window = WindowClause {
            name: f.string("name")?,
            partition_by: self.sort_clauses(f.nodes("partitionClause")?)?,
            order_by: self.sort_clauses(f.nodes("orderClause")?)?,
            frame_options: f.u32("frameOptions")?,
            start_offset: self.optional(&mut f, "startOffset")?,
            end_offset: self.optional(&mut f, "endOffset")?,
            reference: f.u32("winref")?,
        };
        f.refuse("runCondition")?;
        // The in_range functions follow from the ordering column's operator family.
        f.skip(&[
            "refname",
            "startInRangeFunc",
            "endInRangeFunc",
            "inRangeColl",
            "inRangeAsc",
            "inRangeNullsFirst",
            "copiedOrder",
        ]);
        f.end()?;
        Ok(window)
    }

    fn cte(&self, node: Node) -> SqlResult<CommonTableExpr> {
        if node.tag != "COMMONTABLEEXPR" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let cte = CommonTableExpr {
            name: f.string("ctename")?.ok_or_else(|| damaged("COMMONTABLEEXPR without a name"))?,
            materialized: match f.int("ctematerialized")? {
                0 => None,
                1 => Some(true),
                2 => Some(false),
                other => return Err(damaged(format!("ctematerialized {other}"))),
            },
            query: self.query(f.node("ctequery")?.ok_or_else(|| damaged("COMMONTABLEEXPR without a query"))?)?,
            recursive: f.bool("cterecursive")?,
            references: f.u32("cterefcount")?,
            columns: f.strings("ctecolnames")?,
        };
        f.refuse("search_clause")?;
        f.refuse("cycle_clause")?;
        f.skip(&["aliascolnames", "location", "ctecoltypes", "ctecoltypmods", "ctecolcollations"]);
        f.end()?;
        Ok(cte)
    }

    fn set_operation(&self, node: Node) -> SqlResult<SetOperation> {
        if node.tag != "SETOPERATIONSTMT" {
            return Err(unsupported_node(&node.tag));
        }
        self.deeper(|| {
            let mut f = Fields::new(node);
            let operand = |node: Option<Node>| match node {
                Some(node) if node.tag == "RANGETBLREF" => Self::range_table_ref(node).map(SetOperand::Relation),
                Some(node) => Ok(SetOperand::Operation(Box::new(self.set_operation(node)?))),
                None => Err(damaged("SETOPERATIONSTMT without a side")),
            };
            let operation = SetOperation {
                kind: match f.int("op")? {
                    1 => SetOperationKind::Union,
                    2 => SetOperationKind::Intersect,
                    3 => SetOperationKind::Except,
                    other => return Err(damaged(format!("set operation {other}"))),
                },
                all: f.bool("all")?,
                left: operand(f.node("larg")?)?,
                right: operand(f.node("rarg")?)?,
                types: Self::column_types(f.oids("colTypes")?, f.ints("colTypmods")?, f.oids("colCollations")?)?,
                group_by: self.sort_clauses(f.nodes("groupClauses")?)?,
            };
            f.end()?;
            Ok(operation)
        })
    }

    fn row_mark(node: Node) -> SqlResult<usize> {
        if node.tag != "ROWMARKCLAUSE" {
            return Err(unsupported_node(&node.tag));
        }
        let mut f = Fields::new(node);
        let index = f.index("rti")?;
        f.skip(&["strength", "waitPolicy", "pushedDown"]);
        f.end()?;
        Ok(index)
    }
}

/// What a Var of the grouping entry stands for; used by [`replace_group_vars`].
pub(crate) fn group_entry(query: &Query) -> Option<(usize, &[Expr])> {
    query.range_table.iter().enumerate().find_map(|(i, entry)| match &entry.kind {
        RangeTableKind::Group { exprs } => Some((i + 1, exprs.as_slice())),
        _ => None,
    })
}
