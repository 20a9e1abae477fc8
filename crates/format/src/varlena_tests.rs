#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use super::*;
use crate::testing::Random;

fn parsed(bytes: &[u8]) -> Varlena<'_> {
    Varlena::parse_exact(bytes).unwrap()
}

#[test]
fn tells_the_forms_apart() {
    assert_eq!(parsed(b"\x0dhello"), Varlena::Inline(b"hello"));
    assert_eq!(parsed(b"\x03"), Varlena::Inline(b""));
    assert_eq!(parsed(b"\x24\0\0\0hello"), Varlena::Inline(b"hello"));
    assert_eq!(parsed(b"\x10\0\0\0"), Varlena::Inline(b""));
    let Varlena::Compressed(c) = parsed(b"\x2a\0\0\0\x05\0\0\x40xy") else { panic!() };
    assert_eq!((c.method, c.raw_size, c.data), (CompressionMethod::Lz4, 5, &b"xy"[..]));
    let toast = [1u8, 18, 0x94, 0x0C, 0, 0, 0x90, 0x0C, 0, 0, 0x37, 0x40, 0, 0, 0x34, 0x40, 0, 0];
    let Varlena::External(p) = parsed(&toast) else { panic!() };
    let expected = ToastPointer {
        raw_size: 3216,
        stored_size: 3216,
        compression: None,
        value_id: Oid(0x4037),
        toast_relation: Oid(0x4034),
    };
    assert_eq!(p, expected);
}

#[test]
fn a_walk_gets_the_stored_length() {
    assert_eq!(stored_len(b"\x07abrest").unwrap(), 3);
    assert_eq!(stored_len(b"\x18\0\0\0abrest").unwrap(), 6);
}

#[test]
fn refuses_lengths_that_cannot_be() {
    for bytes in [
        &b""[..],
        b"\x0d123",
        b"\x04\0\0",
        b"\x0c\0\0\0",
        b"\x14\0\0\0",
        b"\x1a\0\0\0ab",
        b"\x01",
        b"\x01\x12short",
        b"\x01\x01pointer in memory",
        b"\x01\x02pointer in memory",
    ] {
        assert!(Varlena::parse(bytes).is_err(), "{bytes:?}");
    }
    // Trailing bytes are for `parse`, not for `parse_exact`.
    assert!(Varlena::parse(b"\x05ab").is_ok());
    assert!(Varlena::parse_exact(b"\x05ab").is_err());
    // Stored larger than raw; compressed by an unknown method.
    let pointer = |raw: i32, info: u32| {
        let mut bytes = vec![1u8, 18];
        bytes.extend_from_slice(&raw.to_le_bytes());
        bytes.extend_from_slice(&info.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        Varlena::parse(&bytes).map(|_| ())
    };
    assert!(pointer(104, 100).is_ok());
    assert!(pointer(104, 101).is_err());
    assert!(pointer(104, 0x32 | 1 << 30).is_ok());
    assert!(pointer(104, 0x32 | 2 << 30).is_err());
    assert!(pointer(3, 0).is_err());
    assert!(pointer(-1, 0).is_err());
}

#[test]
fn decompresses_what_postgresql_compressed() {
    // `repeat('long text ', 15)` and `repeat('abcdefgh', 400)`, from testdata/heap_page.bin.
    let page = crate::page::PageRef::new(crate::testing::HEAP_PAGE);
    let tuple = crate::heap_tuple::HeapTupleRef::parse(page.item(crate::ids::OffsetNumber(3)).unwrap()).unwrap();
    let layout = crate::testing::layout("4i 1c 1c 2s 8d 8d -1i -1d -1i 64c -1i");
    for (index, expected) in [(6, "long text ".repeat(15)), (10, "abcdefgh".repeat(400))] {
        let crate::attr::Attr::Value(bytes) = layout.cursor(tuple.data()).get(index).unwrap() else { panic!() };
        let Varlena::Compressed(c) = parsed(bytes) else { panic!("not compressed") };
        assert_eq!(c.method, CompressionMethod::Pglz);
        assert_eq!(c.decompress(1 << 20).unwrap(), expected.as_bytes());
        assert_eq!(crate::pglz::compress(expected.as_bytes()).unwrap(), c.data);
        assert!(matches!(c.decompress(100), Err(Error::TooLarge { limit: 100, .. })));
        let shorter = Compressed { raw_size: c.raw_size - 1, ..c };
        let longer = Compressed { raw_size: c.raw_size + 1, ..c };
        assert!(longer.decompress(1 << 20).is_err());
        // The last tag may be cut short by the size, as in PostgreSQL; what is left over is not accepted.
        if let Ok(out) = shorter.decompress(1 << 20) {
            assert_eq!(out, &expected.as_bytes()[..expected.len() - 1]);
        }
    }
}

/// The texts of testdata/compressed.sql.
fn text(id: usize) -> String {
    let join = |count: usize, f: &dyn Fn(usize) -> String| (1..=count).map(f).collect::<Vec<_>>().join(",");
    match id {
        1 => "stegodon tusks ".repeat(200),
        6 => {
            let chars = |i: usize| [192 + i * 7 % 60, 8364 - i % 90].map(|c| char::from_u32(c as u32).unwrap());
            (1..=1500).map(|i| String::from_iter(chars(i))).collect::<Vec<_>>().join(" ")
        }
        2 | 3 => join(200, &|i| format!("{i} bottles")),
        _ => join(1000, &|i| format!("{} elephants", i * 7919)),
    }
}

#[test]
fn decompresses_lz4_and_toasted_values_of_a_real_server() {
    let mut seen = 0;
    for line in include_str!("../testdata/compressed.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let id: usize = words.next().unwrap().parse().unwrap();
        let stored = crate::testing::unhex(words.next().unwrap());
        let chunks = words.next().map(crate::testing::unhex);
        let expected = if matches!(id, 3 | 5 | 6) { CompressionMethod::Pglz } else { CompressionMethod::Lz4 };
        let compressed = match (parsed(&stored), &chunks) {
            (Varlena::Compressed(compressed), None) => compressed,
            (Varlena::External(pointer), Some(chunks)) => {
                assert_eq!((pointer.stored_size, pointer.compression), (chunks.len(), Some(expected)));
                assert_eq!(crate::toast::chunk_count(&pointer), chunks.len().div_ceil(1996));
                let compressed = Compressed::parse(chunks).unwrap();
                assert_eq!(compressed.raw_size, pointer.raw_size);
                compressed
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(compressed.method, expected);
        assert_eq!(String::from_utf8(compressed.decompress(1 << 20).unwrap()).unwrap(), text(id));
        if compressed.method == CompressionMethod::Pglz {
            assert_eq!(
                crate::pglz::compress(text(id).as_bytes()).unwrap(),
                compressed.data,
                "{id}: not the same bytes"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn lz4_round_trips_and_must_have_the_announced_size() {
    let raw = b"stegodon ".repeat(500);
    let data = lz4_flex::block::compress(&raw);
    let lz4 = CompressionMethod::Lz4;
    assert_eq!(decompress(lz4, &data, raw.len(), 1 << 20).unwrap(), raw);
    assert!(decompress(lz4, &data, raw.len() + 1, 1 << 20).is_err());
    assert!(decompress(lz4, &data, raw.len() - 1, 1 << 20).is_err());
    assert!(decompress(lz4, &data[..data.len() - 1], raw.len(), 1 << 20).is_err());
}

#[test]
fn a_huge_announced_size_takes_no_memory() {
    for method in [CompressionMethod::Pglz, CompressionMethod::Lz4] {
        assert!(decompress(method, &[0; 10], MAX_VARLENA_SIZE, usize::MAX).is_err());
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::new(3);
    for round in 0..20_000 {
        let len = random.below(64);
        let bytes = random.bytes(len);
        if let Ok((_, len)) = Varlena::parse(&bytes) {
            assert!(len > 0 && len <= bytes.len());
        }
        let method = if round % 2 == 0 { CompressionMethod::Pglz } else { CompressionMethod::Lz4 };
        let raw_size = random.below(2000);
        if let Ok(out) = decompress(method, &bytes, raw_size, 4096) {
            assert_eq!(out.len(), raw_size);
        }
    }
}
