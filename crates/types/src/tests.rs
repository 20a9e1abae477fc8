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
