#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use crate::*;

#[test]
fn the_table_is_sorted_by_oid() {
    assert!(table::TYPES.is_sorted_by_key(|row| row.oid));
}

#[test]
fn simple_values_are_read_and_printed() {
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    for (oid, text, printed) in [
        (oids::INT4, " 0x1_F ", "31"),
        (oids::INT8, "-9223372036854775808", "-9223372036854775808"),
        (oids::FLOAT8, "1e23", "9.999999999999999e+22"),
        (oids::FLOAT8, "100000", "100000"),
        (oids::FLOAT8, "1e15", "1e+15"),
        (oids::BOOL, "ye", "t"),
        (oids::BYTEA, "\\x00fF", "\\x00ff"),
        (oids::UUID, "{A0EEBC99-9C0B4EF8BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ] {
        let ty = cx.types.type_desc(oid).unwrap();
        let mut out = Vec::new();
        let value = text_in(&cx, &ty, text.as_bytes(), -1).unwrap();
        text_out(&cx, &ty, value.as_ref(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), printed, "{text}");
    }
}

#[test]
fn the_table_is_what_the_server_says_of_its_types() {
    for line in include_str!("../testdata/pg_type.txt").lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let row = builtin(Oid(parts[0].parse().unwrap())).unwrap_or_else(|| panic!("{line}"));
        let letter = |c: u8| char::from(c).to_string();
        let align = [(Align::Char, "c"), (Align::Short, "s"), (Align::Int, "i"), (Align::Double, "d")];
        let table = [
            row.oid.to_string(),
            row.name.to_owned(),
            row.len.to_string(),
            if row.by_value { "t" } else { "f" }.to_owned(),
            letter(row.category),
            if row.preferred { "t" } else { "f" }.to_owned(),
            letter(row.delimiter),
            row.element.to_string(),
            row.array.to_string(),
            align.iter().find(|a| a.0 == row.align).unwrap().1.to_owned(),
            row.collation.to_string(),
            match row.kind {
                table::RowKind::Range(_) => "r",
                table::RowKind::Multirange(_) => "m",
                _ => "b",
            }
            .to_owned(),
        ];
        assert_eq!(table[..], parts[..12], "{line}");
        // What is not done has neither.
        if !std::ptr::eq(row.ops, &raw const scalar::pseudo::UNSUPPORTED) {
            assert_eq!(row.ops.compare.is_some(), parts[12] == "t", "order of {line}");
            assert_eq!(row.ops.equal.is_some(), parts[13] == "t", "equality of {line}");
            assert_eq!(row.ops.key.is_some(), parts[13] == "t", "key of {line}");
        }
    }
}

fn read(cx: &TypeContext<'_>, oid: Oid, text: &str) -> Datum {
    text_in(cx, &cx.types.type_desc(oid).unwrap(), text.as_bytes(), -1).unwrap()
}

#[test]
fn cross_type_comparators_compare_the_values() {
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    for (support_proc, left, right, lower, upper) in [
        (2190, oids::INT2, oids::INT4, "5", "70000"),
        (2191, oids::INT4, oids::INT2, "-70000", "5"),
        (2192, oids::INT2, oids::INT8, "5", "5000000000"),
        (2193, oids::INT8, oids::INT2, "-5000000000", "5"),
        (2188, oids::INT4, oids::INT8, "5", "5000000000"),
        (2189, oids::INT8, oids::INT4, "-5000000000", "5"),
        (2194, oids::FLOAT4, oids::FLOAT8, "1.5", "NaN"),
        (2195, oids::FLOAT8, oids::FLOAT4, "1e300", "Infinity"),
        (246, oids::NAME, oids::TEXT, "a", "b"),
        (253, oids::TEXT, oids::NAME, "a", "b"),
        (2166, oids::TEXT, oids::TEXT, "a", "b"),
        (2180, oids::BPCHAR, oids::BPCHAR, "a ", "b"),
    ] {
        let compare = comparator(Oid(support_proc)).unwrap();
        let ty = cx.types.type_desc(left).unwrap();
        let (a, b) = (read(&cx, left, lower), read(&cx, right, upper));
        assert!(compare(&cx, &ty, &Collation::C, a.as_ref(), b.as_ref()).unwrap().is_lt(), "{support_proc}");
    }
    assert!(comparator(Oid(3187)).is_none(), "btrecordimagecmp is not done");
}

#[test]
fn ordering_is_refused_where_the_collation_is_not_known_and_equality_is_not() {
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    let english = Collation::equality_only("en_US.utf8");
    for oid in [oids::TEXT, oids::VARCHAR, oids::BPCHAR, oids::TEXT_ARRAY] {
        let ty = cx.types.type_desc(oid).unwrap();
        let value = read(&cx, oid, if oid == oids::TEXT_ARRAY { "{a}" } else { "a" });
        let v = value.as_ref();
        let error = compare(&cx, &ty, &english, v, v).unwrap_err();
        assert_eq!(error.state, SqlState::FeatureNotSupported);
        assert!(error.message.contains("en_US.utf8"), "{error}");
        assert!(encode_key(&cx, &ty, &english, v, &mut Vec::new()).is_err());
        assert!(equal(&cx, &ty, &english, v, v).unwrap());
        encode_equality_key(&cx, &ty, &english, v, &mut Vec::new()).unwrap();
        assert!(hash_extended(&cx, &ty, &english, v, 0).unwrap().is_some());
        let odd = Collation::Unsupported("nondeterministic".into());
        assert!(equal(&cx, &ty, &odd, v, v).is_err());
        assert_eq!(compare(&cx, &ty, &Collation::None, v, v).unwrap_err().state, SqlState::IndeterminateCollation);
    }
}

#[test]
fn bytea_is_escaped_where_the_setting_says_so() {
    let settings = FormatSettings { bytea_output: settings::ByteaOutput::Escape, ..FormatSettings::default() };
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    let ty = cx.types.type_desc(oids::BYTEA).unwrap();
    let mut out = Vec::new();
    text_out(&cx, &ty, ValueRef::Bytes(b"a\\\0\xff ~\x7f"), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r"a\\\000\377 ~\177");
}

/// Names roles 10 `postgres`, 16384 `Mixed` and 16385 `a b`, quoted as `regrole` quotes.
struct Roles;

impl TypeCatalog for Roles {
    fn type_desc(&self, oid: Oid) -> SqlResult<std::sync::Arc<TypeDesc>> {
        BuiltinTypes.type_desc(oid)
    }
    fn enum_label(&self, value: Oid) -> SqlResult<String> {
        BuiltinTypes.enum_label(value)
    }
    fn enum_value(&self, enum_type: Oid, label: &str) -> SqlResult<Option<Oid>> {
        BuiltinTypes.enum_value(enum_type, label)
    }
    fn enum_order(&self, value: Oid) -> SqlResult<f32> {
        BuiltinTypes.enum_order(value)
    }
    fn composite(&self, type_oid: Oid) -> SqlResult<std::sync::Arc<[CompositeAttribute]>> {
        BuiltinTypes.composite(type_oid)
    }
    fn object_name(&self, kind: RegKind, oid: Oid) -> SqlResult<Option<String>> {
        let name = match (kind, oid.0) {
            (RegKind::Role, 10) => "postgres",
            (RegKind::Role, 16384) => "\"Mixed\"",
            (RegKind::Role, 16385) => "\"a b\"",
            _ => return Ok(None),
        };
        Ok(Some(name.to_owned()))
    }
    fn object_oid(&self, kind: RegKind, name: &str) -> SqlResult<Oid> {
        BuiltinTypes.object_oid(kind, name)
    }
}

#[test]
fn acl_items_are_printed_with_their_roles() {
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&Roles, &settings);
    let ty = cx.types.type_desc(oids::ACLITEM).unwrap();
    let item = |grantee: u32, rights: u32, options: u32| {
        let mut bytes = Vec::new();
        for word in [grantee, 10, rights, options] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    };
    let mut fifteen = item(10, 0, 0);
    fifteen.truncate(8);
    fifteen.extend_from_slice(&0x0002_0003u32.to_le_bytes());
    for (bytes, printed) in [
        (item(0, 2, 0), "=r/postgres"),
        (item(10, 0x407F, 0x4000), "postgres=arwdDxtm*/postgres"),
        (item(16384, 2, 0), "Mixed=r/postgres"),
        (item(16385, 0x300, 0), "\"a b\"=UC/postgres"),
        (item(99, 1, 1), "99=a*/postgres"),
        (fifteen, "postgres=ar*/postgres"),
    ] {
        let mut out = Vec::new();
        text_out(&cx, &ty, ValueRef::Bytes(&bytes), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), printed);
    }
}

#[test]
fn an_anonymous_row_says_what_its_columns_are() {
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    let ty = cx.types.type_desc(oids::RECORD).unwrap();
    let numeric = read(&cx, oids::NUMERIC, "1.50");
    let fields = [
        (oids::INT4, -1, Oid(0), Some(ValueRef::Int32(7))),
        (oids::TEXT, -1, Oid(950), None),
        (oids::UNKNOWN, -1, Oid(0), Some(ValueRef::Bytes(b"a b"))),
        (oids::NUMERIC, -1, Oid(0), Some(numeric.as_ref())),
        (oids::INT8, -1, Oid(0), Some(ValueRef::Int64(-1))),
    ];
    let row = record::build_anonymous(&cx, &fields).unwrap();
    let mut out = Vec::new();
    text_out(&cx, &ty, ValueRef::Bytes(&row), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "(7,,\"a b\",1.50,-1)");
    let view = record::RecordView::parse(&cx, &row).unwrap();
    assert_eq!(view.columns.iter().map(|c| c.type_oid.0).collect::<Vec<_>>(), [23, 25, 25, 1700, 20]);
    assert_eq!(view.value(&cx, 4).unwrap().unwrap().value(), ValueRef::Int64(-1));
    assert!(view.value(&cx, 1).unwrap().is_none());
}

#[test]
fn key_columns_are_what_arrow_compares_rightly() {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    let settings = FormatSettings::default();
    let cx = TypeContext::new(&BuiltinTypes, &settings);
    let ty = cx.types.type_desc(oids::NUMERIC).unwrap();
    let mut builder = ColumnBuilder::new(Layout::Bytes, 3);
    for text in ["1.0", "1.00"] {
        builder.append(read(&cx, oids::NUMERIC, text).as_ref()).unwrap();
    }
    builder.append_null();
    let column = builder.finish();
    let keys = column::key_column(&cx, &ty, &Collation::None, &column, column::KeyUse::Equality).unwrap();
    let keys = keys.as_binary::<i64>();
    assert_eq!(keys.value(0), keys.value(1));
    assert!(keys.is_null(2));
    let ty = cx.types.type_desc(oids::TEXT).unwrap();
    let english = Collation::equality_only("en_US");
    assert!(column::key_column(&cx, &ty, &english, &column, column::KeyUse::Equality).is_ok());
    assert!(column::key_column(&cx, &ty, &english, &column, column::KeyUse::Order).is_err());
}
