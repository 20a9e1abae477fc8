//! Scalar expressions.

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_types::{SqlError, SqlResult};

use super::fields::Fields;
use super::token::{Node, Value, damaged};
use super::{Reader, constant, tag_of, unsupported_node};
use crate::expr::*;

fn form(number: i64) -> SqlResult<CoercionForm> {
    Ok(match number {
        0 => CoercionForm::Call,
        1 => CoercionForm::ExplicitCast,
        2 => CoercionForm::ImplicitCast,
        3 => CoercionForm::SqlSyntax,
        _ => return Err(damaged(format!("coercion form {number}"))),
    })
}

impl Reader<'_> {
    /// Any scalar expression.
    pub(super) fn expr(&self, node: Node) -> SqlResult<Expr> {
        self.deeper(|| self.expr_here(node))
    }

    /// A field that must be an expression.
    pub(super) fn required(&self, f: &mut Fields, name: &str) -> SqlResult<Expr> {
        match f.node(name)? {
            Some(node) => self.expr(node),
            None => Err(damaged(format!("field {name} of {} is null", f.tag))),
        }
    }

    /// A field that may be an expression.
    pub(super) fn optional(&self, f: &mut Fields, name: &str) -> SqlResult<Option<Expr>> {
        f.node(name)?.map(|node| self.expr(node)).transpose()
    }

    /// A field that is a list of expressions.
    pub(super) fn expr_list(&self, f: &mut Fields, name: &str) -> SqlResult<Vec<Expr>> {
        self.exprs(f.list(name)?)
    }

    fn expr_here(&self, node: Node) -> SqlResult<Expr> {
        let tag = tag_of(&node);
        let mut f = Fields::new(node);
        let expr = match tag.as_str() {
            "VAR" => Self::var(&mut f)?,
            "CONST" => self.constant(&mut f)?,
            "PARAM" => Expr::Param(Param {
                kind: match f.int("paramkind")? {
                    0 => ParamKind::Extern,
                    1 => ParamKind::Exec,
                    2 => ParamKind::SubLink,
                    other => return Err(unsupported_node(&format!("PARAM of kind {other}"))),
                },
                id: f.u32("paramid")?,
                type_oid: f.oid("paramtype")?,
                typmod: f.i32("paramtypmod")?,
                collation: f.oid("paramcollid")?,
                location: None,
            }),
            "AGGREF" => self.aggref(&mut f)?,
            "GROUPINGFUNC" => {
                let func = GroupingFunc {
                    args: self.expr_list(&mut f, "args")?,
                    refs: f.ints("refs")?,
                    levels_up: f.u32("agglevelsup")?,
                };
                f.skip(&["cols"]);
                Expr::GroupingFunc(func)
            }
            "WINDOWFUNC" => {
                let func = WindowFunc {
                    function: f.oid("winfnoid")?,
                    result_type: f.oid("wintype")?,
                    collation: f.oid("wincollid")?,
                    input_collation: f.oid("inputcollid")?,
                    args: self.expr_list(&mut f, "args")?,
                    filter: self.optional(&mut f, "aggfilter")?,
                    window_ref: f.u32("winref")?,
                    star: f.bool("winstar")?,
                    is_aggregate: f.bool("winagg")?,
                };
                f.refuse("runCondition")?;
                Expr::WindowFunc(Box::new(func))
            }
            "SUBSCRIPTINGREF" => {
                let subscript = SubscriptingRef {
                    container_type: f.oid("refcontainertype")?,
                    element_type: f.oid("refelemtype")?,
                    result_type: f.oid("refrestype")?,
                    typmod: f.i32("reftypmod")?,
                    collation: f.oid("refcollid")?,
                    upper: self.subscripts(&mut f, "refupperindexpr")?,
                    lower: self.subscripts(&mut f, "reflowerindexpr")?,
                    container: self.required(&mut f, "refexpr")?,
                };
                f.refuse("refassgnexpr")?;
                Expr::Subscript(Box::new(subscript))
            }
            "FUNCEXPR" => Expr::Func(FuncExpr {
                function: f.oid("funcid")?,
                result_type: f.oid("funcresulttype")?,
                returns_set: f.bool("funcretset")?,
                variadic: f.bool("funcvariadic")?,
                form: form(f.int("funcformat")?)?,
                collation: f.oid("funccollid")?,
                input_collation: f.oid("inputcollid")?,
                args: self.call_args(&mut f)?,
                location: None,
            }),
            "OPEXPR" => Expr::Op(self.op(&mut f)?),
            "DISTINCTEXPR" => Expr::Distinct(self.op(&mut f)?),
            "NULLIFEXPR" => Expr::NullIf(self.op(&mut f)?),
            "SCALARARRAYOPEXPR" => {
                let (operator, function, any) = (f.oid("opno")?, f.oid("opfuncid")?, f.bool("useOr")?);
                let input_collation = f.oid("inputcollid")?;
                let args: [Expr; 2] = self
                    .expr_list(&mut f, "args")?
                    .try_into()
                    .map_err(|_| damaged("SCALARARRAYOPEXPR without two arguments"))?;
                // Planning's business: it chooses whether to hash.
                f.skip(&["hashfuncid", "negfuncid"]);
                let args = Box::new(args);
                Expr::ScalarArrayOp(ScalarArrayOp { operator, function, any, input_collation, args, location: None })
            }
            "BOOLEXPR" => {
                let kind = match f.string("boolop")?.as_deref() {
                    Some("and") => BoolKind::And,
                    Some("or") => BoolKind::Or,
                    Some("not") => BoolKind::Not,
                    _ => return Err(damaged("boolop of BOOLEXPR")),
                };
                Expr::Bool(BoolExpr { kind, args: self.expr_list(&mut f, "args")?, location: None })
            }
            "SUBLINK" => self.sublink(&mut f)?,
            "FIELDSELECT" => Expr::FieldSelect(Box::new(FieldSelect {
                arg: self.required(&mut f, "arg")?,
                field: f.attno("fieldnum")?,
                result_type: f.oid("resulttype")?,
                typmod: f.i32("resulttypmod")?,
                collation: f.oid("resultcollid")?,
            })),
            "RELABELTYPE" => Expr::Relabel(Relabel {
                arg: Box::new(self.required(&mut f, "arg")?),
                result_type: f.oid("resulttype")?,
                typmod: f.i32("resulttypmod")?,
                collation: f.oid("resultcollid")?,
                form: form(f.int("relabelformat")?)?,
            }),
            "COERCEVIAIO" => Expr::CoerceViaIo(CoerceViaIo {
                arg: Box::new(self.required(&mut f, "arg")?),
                result_type: f.oid("resulttype")?,
                collation: f.oid("resultcollid")?,
                form: form(f.int("coerceformat")?)?,
            }),
            "ARRAYCOERCEEXPR" => Expr::ArrayCoerce(Box::new(ArrayCoerce {
                arg: self.required(&mut f, "arg")?,
                element: self.required(&mut f, "elemexpr")?,
                result_type: f.oid("resulttype")?,
                typmod: f.i32("resulttypmod")?,
                collation: f.oid("resultcollid")?,
                form: form(f.int("coerceformat")?)?,
            })),
            "CONVERTROWTYPEEXPR" => {
                let convert = ConvertRowtype { arg: self.required(&mut f, "arg")?, result_type: f.oid("resulttype")? };
                f.skip(&["convertformat"]);
                Expr::ConvertRowtype(Box::new(convert))
            }
            "COLLATEEXPR" => {
                Expr::Collate(Box::new(Collate { arg: self.required(&mut f, "arg")?, collation: f.oid("collOid")? }))
            }
            "CASEEXPR" => self.case(&mut f)?,
            "CASETESTEXPR" | "COERCETODOMAINVALUE" => Expr::CaseTest(CaseTest {
                type_oid: f.oid("typeId")?,
                typmod: f.i32("typeMod")?,
                collation: f.oid("collation")?,
            }),
            "ARRAYEXPR" => {
                let array = ArrayExpr {
                    array_type: f.oid("array_typeid")?,
                    element_type: f.oid("element_typeid")?,
                    collation: f.oid("array_collid")?,
                    elements: self.expr_list(&mut f, "elements")?,
                    multidims: f.bool("multidims")?,
                    location: None,
                };
                f.skip(&["list_start", "list_end"]);
                Expr::Array(array)
            }
            "ROWEXPR" => Expr::Row(RowExpr {
                args: self.expr_list(&mut f, "args")?,
                row_type: f.oid("row_typeid")?,
                names: f.strings("colnames")?,
                form: form(f.int("row_format")?)?,
                location: None,
            }),
            "ROWCOMPAREEXPR" => {
                let number = if f.has("cmptype") { f.int("cmptype")? } else { f.int("rctype")? };
                Expr::RowCompare(Box::new(RowCompare {
                    kind: match number {
                        1 => RowCompareKind::Less,
                        2 => RowCompareKind::LessEqual,
                        4 => RowCompareKind::GreaterEqual,
                        5 => RowCompareKind::Greater,
                        _ => return Err(damaged(format!("row comparison {number}"))),
                    },
                    operators: f.oids("opnos")?,
                    families: f.oids("opfamilies")?,
                    input_collations: f.oids("inputcollids")?,
                    left: self.expr_list(&mut f, "largs")?,
                    right: self.expr_list(&mut f, "rargs")?,
                }))
            }
            "COALESCEEXPR" => Expr::Coalesce(Coalesce {
                result_type: f.oid("coalescetype")?,
                collation: f.oid("coalescecollid")?,
                args: self.expr_list(&mut f, "args")?,
            }),
            "MINMAXEXPR" => Expr::MinMax(MinMax {
                result_type: f.oid("minmaxtype")?,
                collation: f.oid("minmaxcollid")?,
                input_collation: f.oid("inputcollid")?,
                greatest: match f.int("op")? {
                    0 => true,
                    1 => false,
                    other => return Err(damaged(format!("op {other} of MINMAXEXPR"))),
                },
                args: self.expr_list(&mut f, "args")?,
            }),
            "SQLVALUEFUNCTION" => Expr::SqlValue(SqlValue {
                kind: match f.int("op")? {
                    0 => SqlValueKind::CurrentDate,
                    1 | 2 => SqlValueKind::CurrentTime,
                    3 | 4 => SqlValueKind::CurrentTimestamp,
                    5 | 6 => SqlValueKind::LocalTime,
                    7 | 8 => SqlValueKind::LocalTimestamp,
                    9 => SqlValueKind::CurrentRole,
                    10 => SqlValueKind::CurrentUser,
                    11 => SqlValueKind::User,
                    12 => SqlValueKind::SessionUser,
                    13 => SqlValueKind::CurrentCatalog,
                    14 => SqlValueKind::CurrentSchema,
                    other => return Err(damaged(format!("op {other} of SQLVALUEFUNCTION"))),
                },
                type_oid: f.oid("type")?,
                typmod: f.i32("typmod")?,
            }),
            "NULLTEST" => Expr::NullTest(Box::new(NullTest {
                arg: self.required(&mut f, "arg")?,
                is_null: match f.int("nulltesttype")? {
                    0 => true,
                    1 => false,
                    other => return Err(damaged(format!("null test {other}"))),
                },
                arg_is_row: f.bool("argisrow")?,
            })),
            "BOOLEANTEST" => Expr::BooleanTest(Box::new(BooleanTest {
                arg: self.required(&mut f, "arg")?,
                kind: match f.int("booltesttype")? {
                    0 => BooleanTestKind::IsTrue,
                    1 => BooleanTestKind::IsNotTrue,
                    2 => BooleanTestKind::IsFalse,
                    3 => BooleanTestKind::IsNotFalse,
                    4 => BooleanTestKind::IsUnknown,
                    5 => BooleanTestKind::IsNotUnknown,
                    other => return Err(damaged(format!("boolean test {other}"))),
                },
            })),
            "COERCETODOMAIN" => Expr::CoerceToDomain(Box::new(CoerceToDomain {
                arg: self.required(&mut f, "arg")?,
                result_type: f.oid("resulttype")?,
                typmod: f.i32("resulttypmod")?,
                collation: f.oid("resultcollid")?,
                form: form(f.int("coercionformat")?)?,
            })),
            "NEXTVALUEEXPR" => {
                let sequence = f.oid("seqid")?;
                f.skip(&["typeId"]);
                Expr::NextValue(sequence)
            }
            other => return Err(unsupported_node(other)),
        };
        f.skip(&["location"]);
        f.end()?;
        Ok(expr)
    }

    fn var(f: &mut Fields) -> SqlResult<Expr> {
        let number = f.int("varno")?;
        // Negative numbers (65000 and above before 15) belong to plans and rules, not to stored trees.
        let relation = usize::try_from(number).ok().filter(|n| (1..65000).contains(n));
        let relation = relation.ok_or_else(|| unsupported_node(&format!("VAR of relation {number}")))?;
        let var = Var {
            source: VarSource::Relation(relation),
            attno: f.attno("varattno")?,
            type_oid: f.oid("vartype")?,
            typmod: f.i32("vartypmod")?,
            collation: f.oid("varcollid")?,
            levels_up: f.u32("varlevelsup")?,
            location: None,
        };
        // Which outer joins may null it: planning finds out by itself, as before 16. The syntactic copy is display's.
        f.skip(&["varnullingrels", "varnosyn", "varattnosyn", "varnoold", "varoattno"]);
        f.refuse("varreturningtype")?;
        Ok(Expr::Var(var))
    }

    fn constant(&self, f: &mut Fields) -> SqlResult<Expr> {
        let type_oid = f.oid("consttype")?;
        let (typmod, collation) = (f.i32("consttypmod")?, f.oid("constcollid")?);
        let (len, by_value, is_null) = (f.int("constlen")?, f.bool("constbyval")?, f.bool("constisnull")?);
        let value = match (is_null, f.take("constvalue")?) {
            (true, Value::Null) => None,
            (true, _) => return Err(damaged("a null CONST has a value")),
            (false, bytes) => Some(constant::decode(type_oid, self.context.layout(type_oid), len, by_value, bytes)?),
        };
        Ok(Expr::Const(Const { type_oid, typmod, collation, value, location: None }))
    }

    /// The arguments of a call. Those that were written by name say where they belong; where a default is left out before
    /// one of them, the call cannot be told from its position alone.
    fn call_args(&self, f: &mut Fields) -> SqlResult<Vec<Expr>> {
        let mut named: Vec<(usize, Expr)> = Vec::new();
        let mut args = Vec::new();
        for node in f.nodes("args")? {
            if node.tag == "NAMEDARGEXPR" {
                let mut f = Fields::new(node);
                let place = f.index("argnumber")?;
                named.push((place, self.required(&mut f, "arg")?));
                f.skip(&["name", "location"]);
                f.end()?;
            } else if named.is_empty() {
                args.push(self.expr(node)?);
            } else {
                return Err(damaged("a positional argument after a named one"));
            }
        }
        named.sort_by_key(|(place, _)| *place);
        for (place, arg) in named {
            if place != args.len() {
                return Err(SqlError::unsupported("a stored call that leaves out an argument before a named one"));
            }
            args.push(arg);
        }
        Ok(args)
    }

    fn op(&self, f: &mut Fields) -> SqlResult<OpExpr> {
        Ok(OpExpr {
            operator: f.oid("opno")?,
            function: f.oid("opfuncid")?,
            result_type: f.oid("opresulttype")?,
            returns_set: f.bool("opretset")?,
            collation: f.oid("opcollid")?,
            input_collation: f.oid("inputcollid")?,
            args: self.expr_list(f, "args")?,
            location: None,
        })
    }

    fn aggref(&self, f: &mut Fields) -> SqlResult<Expr> {
        let aggref = Aggref {
            function: f.oid("aggfnoid")?,
            result_type: f.oid("aggtype")?,
            collation: f.oid("aggcollid")?,
            input_collation: f.oid("inputcollid")?,
            arg_types: f.oids("aggargtypes")?,
            direct_args: self.expr_list(f, "aggdirectargs")?,
            args: self.targets(f.nodes("args")?)?,
            order_by: self.sort_clauses(f.nodes("aggorder")?)?,
            distinct: self.sort_clauses(f.nodes("aggdistinct")?)?,
            filter: self.optional(f, "aggfilter")?,
            star: f.bool("aggstar")?,
            variadic: f.bool("aggvariadic")?,
            kind: match f.char("aggkind")? {
                b'n' => AggregateKind::Normal,
                b'o' => AggregateKind::OrderedSet,
                b'h' => AggregateKind::Hypothetical,
                other => return Err(damaged(format!("aggregate kind \"{}\"", char::from(other)))),
            },
            levels_up: f.u32("agglevelsup")?,
            location: None,
        };
        f.skip(&["aggtranstype", "aggpresorted", "aggno", "aggtransno"]);
        f.refuse("aggsplit")?;
        Ok(Expr::Aggref(Box::new(aggref)))
    }

    fn subscripts(&self, f: &mut Fields, name: &str) -> SqlResult<Vec<Option<Expr>>> {
        f.list(name)?
            .into_iter()
            .map(|item| match item {
                Value::Null => Ok(None),
                Value::Node(node) => self.expr(node).map(Some),
                _ => Err(damaged("a subscript is not an expression")),
            })
            .collect()
    }

    fn sublink(&self, f: &mut Fields) -> SqlResult<Expr> {
        let kind = match f.int("subLinkType")? {
            0 => SubLinkKind::Exists,
            1 => SubLinkKind::All,
            2 => SubLinkKind::Any,
            3 => SubLinkKind::RowCompare,
            4 => SubLinkKind::Expr,
            6 => SubLinkKind::Array,
            other => return Err(unsupported_node(&format!("SUBLINK of type {other}"))),
        };
        f.refuse("subLinkId")?;
        // How the operator was written: display's.
        f.skip(&["operName"]);
        let test = self.optional(f, "testexpr")?;
        let query = f.node("subselect")?.ok_or_else(|| damaged("SUBLINK without a query"))?;
        Ok(Expr::SubLink(Box::new(SubLink { kind, test, query: self.query(query)?, location: None })))
    }

    fn case(&self, f: &mut Fields) -> SqlResult<Expr> {
        let (result_type, collation) = (f.oid("casetype")?, f.oid("casecollid")?);
        let arg = self.optional(f, "arg")?;
        let whens = f
            .nodes("args")?
            .into_iter()
            .map(|node| {
                let tag = tag_of(&node);
                if tag != "CASEWHEN" {
                    return Err(unsupported_node(&tag));
                }
                let mut f = Fields::new(node);
                let when = (self.required(&mut f, "expr")?, self.required(&mut f, "result")?);
                f.skip(&["location"]);
                f.end()?;
                Ok(when)
            })
            .collect::<SqlResult<_>>()?;
        let default = match self.optional(f, "defresult")? {
            Some(default) => default,
            None => Expr::Const(Const { type_oid: result_type, typmod: -1, collation, value: None, location: None }),
        };
        Ok(Expr::Case(Box::new(CaseExpr { result_type, collation, arg, whens, default })))
    }

    /// A list of `TargetEntry`.
    pub(super) fn targets(&self, nodes: Vec<Node>) -> SqlResult<Vec<TargetEntry>> {
        nodes
            .into_iter()
            .map(|node| {
                if node.tag != "TARGETENTRY" {
                    return Err(unsupported_node(&node.tag));
                }
                let mut f = Fields::new(node);
                let target = TargetEntry {
                    expr: self.required(&mut f, "expr")?,
                    resno: f.attno("resno")?,
                    name: f.string("resname")?,
                    sort_group_ref: f.u32("ressortgroupref")?,
                    origin_table: f.oid("resorigtbl")?,
                    origin_column: f.attno("resorigcol")?,
                    junk: f.bool("resjunk")?,
                };
                f.end()?;
                Ok(target)
            })
            .collect()
    }

    /// A list of `SortGroupClause`.
    pub(super) fn sort_clauses(&self, nodes: Vec<Node>) -> SqlResult<Vec<SortGroupClause>> {
        nodes
            .into_iter()
            .map(|node| {
                if node.tag != "SORTGROUPCLAUSE" {
                    return Err(unsupported_node(&node.tag));
                }
                let mut f = Fields::new(node);
                let (reference, equality, ordering) = (f.u32("tleSortGroupRef")?, f.oid("eqop")?, f.oid("sortop")?);
                let descending = if f.has("reverse_sort") {
                    f.bool("reverse_sort")?
                } else if ordering.is_valid() {
                    let known = self.context.is_descending(ordering);
                    known.ok_or_else(|| damaged(format!("operator {ordering} does not order")))?
                } else {
                    false
                };
                let clause = SortGroupClause {
                    reference,
                    equality,
                    ordering,
                    descending,
                    nulls_first: f.bool("nulls_first")?,
                    hashable: f.bool("hashable")?,
                };
                f.end()?;
                Ok(clause)
            })
            .collect()
    }

    /// Column types, typmods and collations, which stand in three lists.
    pub(super) fn column_types(
        types: Vec<Oid>,
        typmods: Vec<i32>,
        collations: Vec<Oid>,
    ) -> SqlResult<Vec<(Oid, i32, Oid)>> {
        if types.len() != typmods.len() || types.len() != collations.len() {
            return Err(damaged("lists of column types of unequal lengths"));
        }
        Ok(types.into_iter().zip(typmods).zip(collations).map(|((t, m), c)| (t, m, c)).collect())
    }

    /// The columns of a permission set: bit 0 is attribute -7.
    pub(super) fn attributes_of_bitmap(bits: Vec<i32>) -> SqlResult<Vec<AttrNumber>> {
        bits.into_iter()
            .map(|bit| i16::try_from(bit - 7).map(AttrNumber).map_err(|_| damaged("column out of range")))
            .collect()
    }
}
