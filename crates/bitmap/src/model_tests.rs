//! The bitmap against a plain set of TIDs, over random histories and budgets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use stegodon_format::ids::{BlockNumber, OffsetNumber, Tid};

use crate::{FrozenBitmap, MIN_BUDGET_BYTES, PageMatches, TidBitmap};

/// xorshift64*, seeded: a failure names its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % limit
    }
}

/// What must come out: at least these tuples; and nothing else without recheck.
#[derive(Clone, Default)]
struct Model {
    tids: BTreeSet<Tid>,
    pages: BTreeSet<BlockNumber>,
}

fn random_tids(random: &mut Random, count: u64, blocks: u64, per_page: u64) -> Vec<Tid> {
    let clustered = random.below(2) == 0;
    let mut block = random.below(blocks);
    (0..count)
        .map(|_| {
            block = if clustered { (block + random.below(3) / 2) % blocks } else { random.below(blocks) };
            Tid::new(BlockNumber(block as u32), OffsetNumber((random.below(per_page) + 1) as u16))
        })
        .collect()
}

fn collect(bitmap: &FrozenBitmap) -> BTreeMap<BlockNumber, PageMatches> {
    let mut pages = BTreeMap::new();
    let mut last = None;
    for page in bitmap {
        assert!(last < Some(page.block), "blocks ascend");
        last = Some(page.block);
        pages.insert(page.block, page.matches);
    }
    pages
}

/// Every tuple of the model comes out, and whatever else comes out says recheck.
fn check(bitmap: &FrozenBitmap, model: &Model, seed: u64) {
    let pages = collect(bitmap);
    for tid in &model.tids {
        match pages.get(&tid.block) {
            Some(PageMatches::Lossy) => {}
            Some(PageMatches::Exact { offsets, .. }) => {
                assert!(offsets.contains(tid.offset), "seed {seed}: {tid} is missing");
            }
            None => panic!("seed {seed}: {tid}'s page is missing"),
        }
    }
    for block in &model.pages {
        assert_eq!(pages.get(block), Some(&PageMatches::Lossy), "seed {seed}: page {block}");
    }
    for (block, matches) in &pages {
        if let PageMatches::Exact { offsets, recheck: false } = matches {
            for offset in offsets.iter() {
                assert!(model.tids.contains(&Tid::new(*block, offset)), "seed {seed}: ({block},{offset}) is too much");
            }
        }
    }
}

fn build(tids: &[Tid], budget_bytes: usize) -> TidBitmap {
    let mut bitmap = TidBitmap::new(budget_bytes);
    for batch in tids.chunks(300) {
        bitmap.add_tids(batch.iter().copied(), false).unwrap();
        assert!(bitmap.memory_bytes() <= budget_bytes, "{} of {budget_bytes}", bitmap.memory_bytes());
    }
    bitmap
}

#[test]
fn with_enough_memory_everything_is_exact() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let count = random.below(20_000);
        let tids = random_tids(&mut random, count, 3000, 291);
        let bitmap = build(&tids, 64 << 20).freeze();
        let model = Model { tids: tids.iter().copied().collect(), ..Model::default() };
        assert_eq!(bitmap.lossy_pages(), 0);
        assert_eq!(bitmap.exact_tuples(), model.tids.len() as u64);
        check(&bitmap, &model, seed);
    }
}

#[test]
fn the_budget_is_kept_and_nothing_is_lost() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let budget_bytes = MIN_BUDGET_BYTES + random.below(200_000) as usize;
        let count = random.below(100_000);
        let blocks = [500, 20_000, 3_000_000, u64::from(u32::MAX)][random.below(4) as usize];
        let per_page = [1, 20, 291][random.below(3) as usize];
        let tids = random_tids(&mut random, count, blocks, per_page);
        let bitmap = build(&tids, budget_bytes).freeze();
        let model = Model { tids: tids.iter().copied().collect(), ..Model::default() };
        // Far too coarse a bitmap to walk block by block: look at where its tuples are only.
        if bitmap.lossy_pages() > 3_000_000 {
            for tid in model.tids.iter().step_by(97) {
                let page = bitmap.iter_range(tid.block..tid.block.next()).next();
                assert_eq!(page.map(|page| page.block), Some(tid.block), "seed {seed}: {tid}");
            }
            continue;
        }
        check(&bitmap, &model, seed);
    }
}

#[test]
fn the_densest_regions_become_lossy_first() {
    let mut tids: Vec<Tid> = Vec::new();
    for block in 0..4096u32 {
        // Even regions are dense, odd ones have one tuple a page.
        let count = if block / 256 % 2 == 0 { 60 } else { 1 };
        tids.extend((1..=count).map(|offset| Tid::new(BlockNumber(block), OffsetNumber(offset))));
    }
    let bitmap = build(&tids, 80_000).freeze();
    assert!(bitmap.lossy_pages() > 0);
    for page in &bitmap {
        if page.block.0 / 256 % 2 == 1 {
            assert!(matches!(page.matches, PageMatches::Exact { .. }), "block {}", page.block);
        }
    }
}

/// Or and And over leaves that are exact, lossy in places, or coarse.
#[test]
fn combinations_keep_every_tuple_and_claim_none() {
    for seed in 1..200 {
        let mut random = Random(seed);
        let leaf = |random: &mut Random| {
            let blocks = [600, 5000][random.below(2) as usize];
            let most = [60_000, 3000, 3000][random.below(3) as usize];
            let count = random.below(most);
            let per_page = [3, 40, 291][random.below(3) as usize];
            let tids = random_tids(random, count, blocks, per_page);
            let budget_bytes = [1 << 20, MIN_BUDGET_BYTES][random.below(2) as usize];
            let mut bitmap = build(&tids, budget_bytes);
            let mut model = Model { tids: tids.into_iter().collect(), ..Model::default() };
            if random.below(4) == 0 {
                let block = BlockNumber(random.below(blocks) as u32);
                bitmap.add_page(block).unwrap();
                model.tids.extend((1..=291).map(|offset| Tid::new(block, OffsetNumber(offset))));
            }
            bitmap.settle();
            if random.below(4) == 0 {
                (0..random.below(4)).for_each(|_| bitmap.coarsen());
            }
            (bitmap, model)
        };
        let (mut bitmap, mut model) = leaf(&mut random);
        for _ in 0..random.below(4) {
            let (other, other_model) = leaf(&mut random);
            if random.below(2) == 0 {
                bitmap.union(other);
                model.tids.extend(other_model.tids);
            } else {
                bitmap.intersect(other);
                model.tids.retain(|tid| other_model.tids.contains(tid));
            }
            assert!(bitmap.memory_bytes() <= 1 << 20);
        }
        check(&bitmap.freeze(), &model, seed);
    }
}

#[test]
fn exact_and_lossy_keep_the_exact_offsets_whichever_side() {
    let tid = |block, offset| Tid::new(BlockNumber(block), OffsetNumber(offset));
    for swap in [false, true] {
        let mut exact = TidBitmap::new(1 << 20);
        exact.add_tids([tid(5, 1), tid(5, 9), tid(6, 2)], false).unwrap();
        let mut lossy = TidBitmap::new(1 << 20);
        lossy.add_page(BlockNumber(5)).unwrap();
        let (mut left, right) = if swap { (lossy, exact) } else { (exact, lossy) };
        left.intersect(right);
        let pages = collect(&left.freeze());
        assert_eq!(pages.len(), 1);
        match pages[&BlockNumber(5)] {
            PageMatches::Exact { offsets, recheck: true } => {
                assert_eq!(offsets.iter().map(|offset| offset.0).collect::<Vec<_>>(), [1, 9]);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn recheck_belongs_to_the_page() {
    let tid = |block, offset| Tid::new(BlockNumber(block), OffsetNumber(offset));
    let mut bitmap = TidBitmap::new(1 << 20);
    bitmap.add_tids([tid(1, 1), tid(2, 1)], false).unwrap();
    bitmap.add_tids([tid(2, 2)], true).unwrap();
    let rechecks: Vec<bool> = bitmap.freeze().iter().map(|page| page.needs_recheck()).collect();
    assert_eq!(rechecks, [false, true]);
}

#[test]
fn ranges_cover_every_page_once_and_evenly() {
    for seed in 1..60 {
        let mut random = Random(seed);
        let count = random.below(5000);
        let tids = random_tids(&mut random, count, 20_000, 30);
        let bitmap = build(&tids, MIN_BUDGET_BYTES).freeze();
        let all: Vec<_> = bitmap.iter().collect();
        for parts in [1, 2, 3, 7, 64] {
            let ranges = bitmap.divide(parts);
            assert!(ranges.len() <= parts);
            assert_eq!(ranges.first().unwrap().start, BlockNumber(0));
            assert_eq!(ranges.last().unwrap().end, BlockNumber::INVALID);
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let mut seen = Vec::new();
            for range in ranges {
                let part: Vec<_> = bitmap.iter_range(range).collect();
                assert!(part.len() <= all.len() / parts + 1, "seed {seed}: {} of {}", part.len(), all.len());
                seen.extend(part);
            }
            assert_eq!(seen, all, "seed {seed}");
        }
    }
}

#[test]
fn tids_that_no_heap_can_have_are_refused() {
    let mut bitmap = TidBitmap::new(1 << 20);
    for (tid, message) in [
        (Tid::new(BlockNumber(1), OffsetNumber(0)), "tuple offset out of range: 0"),
        (Tid::new(BlockNumber(1), OffsetNumber(292)), "tuple offset out of range: 292"),
        (Tid::new(BlockNumber::INVALID, OffsetNumber(1)), "block number out of range: 4294967295"),
    ] {
        assert_eq!(bitmap.add_tids([tid], false).unwrap_err().to_string(), message);
    }
    assert!(bitmap.freeze().is_empty());
}
