//! A page into columns, under descriptions that need not fit it.

use arrow_array::Array;
use stegodon_format::ids::{AttrNumber, BlockNumber, OffsetNumber, Oid};
use stegodon_format::varlena::{ToastPointer, Varlena};
use stegodon_heap::toast::{Assembly, Chunk};
use stegodon_heap::{Attribute, Columns, Deformer, HeapPage, TupleDesc, visible_to_all, visible_to_toast};
use stegodon_types::{Align, Datum, Layout};

use crate::format::make_page;
use crate::input::Input;

const FORMS: [(i16, Align, Option<Layout>); 18] = [
    (4, Align::Int, Some(Layout::Int32)),
    (-1, Align::Int, Some(Layout::Bytes)),
    (8, Align::Double, Some(Layout::Int64)),
    (1, Align::Char, Some(Layout::Bool)),
    (2, Align::Short, Some(Layout::Int16)),
    (-1, Align::Double, Some(Layout::Bytes)),
    (-2, Align::Char, None),
    (64, Align::Char, Some(Layout::Name)),
    (16, Align::Char, Some(Layout::Fixed(16))),
    (1, Align::Char, Some(Layout::Char)),
    (4, Align::Int, Some(Layout::UInt32)),
    (4, Align::Int, Some(Layout::Float32)),
    (8, Align::Double, Some(Layout::Float64)),
    (6, Align::Short, Some(Layout::Fixed(6))),
    (-1, Align::Char, None),
    (300, Align::Char, None),
    (8, Align::Char, Some(Layout::UInt64)),
    (i16::MAX, Align::Double, None),
];

fn desc(input: &mut Input<'_>) -> Option<TupleDesc> {
    let attrs = (0..input.u8() % 16).map(|at| {
        let choice = input.u8();
        let (len, align, layout) = FORMS[usize::from(choice & 31) % FORMS.len()];
        let missing = match layout {
            Some(Layout::Bytes | Layout::Name) => Some(Datum::bytes("gone")),
            Some(Layout::Int32) => Some(Datum::Int32(7)),
            _ => None,
        };
        let dropped = choice & 64 == 64;
        let missing = missing.filter(|_| choice & 128 == 128);
        Attribute { dropped, missing, ..Attribute::new(format!("c{at}"), Oid(23), len, align, layout) }
    });
    TupleDesc::new("t", Oid(16384), attrs.collect()).ok()
}

/// The columns' arrays, with what lies in TOAST filled in.
fn read(
    desc: &TupleDesc,
    page: &HeapPage<'_>,
    offsets: &[OffsetNumber],
    wanted: &[AttrNumber],
) -> stegodon_heap::Result<Vec<arrow_array::ArrayRef>> {
    let deformer = Deformer::new(desc, wanted)?;
    let mut columns = Columns::new(&deformer, offsets.len());
    deformer.deform(page, offsets, &mut columns)?;
    for index in 0..columns.toasted().len() {
        columns.fill(index, b"fetched".to_vec())?;
    }
    let arrays = columns.finish()?;
    assert!(arrays.iter().all(|array| array.len() == offsets.len()));
    Ok(arrays)
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let Some(desc) = desc(&mut input) else { return };
    let sequence = input.u8();
    let page = make_page(&mut input);
    let page = HeapPage::new("t", BlockNumber(u32::from(sequence & 1)), page.view());
    if page.page().verify().is_err() {
        return; // never gets out of the pool
    }
    let mut offsets = Vec::new();
    let visible = page.visible_offsets(&mut visible_to_all(), &mut offsets);
    for offset in 0..=page.page().max_offset().0.min(70) {
        let _ = page.hot_search(OffsetNumber(offset), &mut visible_to_toast());
        let _ = page.hot_search(OffsetNumber(offset), &mut visible_to_all());
        if let Ok(chunk) = Chunk::read(&page, OffsetNumber(offset)) {
            assemble(chunk);
        }
    }
    if visible.is_err() {
        return;
    }
    let count = desc.attrs().len() as i16;
    let system = [-1, -2, -3, -4, -5, -6].map(AttrNumber);
    let all: Vec<AttrNumber> =
        (1..=count).map(AttrNumber).filter(|number| Deformer::new(&desc, &[*number]).is_ok()).collect();
    let mut wanted = all.clone();
    wanted.extend(system);
    wanted.extend(all.first());
    let together = read(&desc, &page, &offsets, &wanted);
    for (at, number) in all.iter().enumerate() {
        let alone = read(&desc, &page, &offsets, &[*number]);
        if let Ok(together) = &together {
            assert_eq!(*together[at], *alone.unwrap()[0]);
        }
    }
}

/// A chunk as the first of values of several sizes.
fn assemble(chunk: Chunk<'_>) {
    if let Ok(Varlena::External(pointer)) = Varlena::parse_exact(chunk.stored) {
        let _ = Assembly::new(pointer, "pg_toast_1").push_stored(chunk.seq, chunk.stored);
    }
    for (raw_size, stored_size) in [(4, 4), (1996, 1996), (1 << 29, 20), (usize::MAX >> 34, 1 << 29)] {
        let pointer = ToastPointer {
            raw_size,
            stored_size,
            compression: (stored_size < raw_size).then_some(stegodon_format::varlena::CompressionMethod::Pglz),
            value_id: chunk.value_id,
            toast_relation: Oid(1),
        };
        let mut assembly = Assembly::new(pointer, "pg_toast_1");
        if assembly.push_stored(0, chunk.stored).is_ok() {
            let _ = assembly.push_stored(1, chunk.stored);
            let _ = assembly.finish();
        }
    }
}
