//! What happens to a file: chosen by a seed, applied to its bytes.

use stegodon_format::btree::Opaque;
use stegodon_format::checksum;
use stegodon_format::ids::BlockNumber;
use stegodon_format::page::{BLCKSZ, ItemId, PageRef};

/// A seeded source of choices: a case names its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            random.below(2);
        }
        random
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16) % limit.max(1)
    }

    /// One of `of`.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

/// One damage to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Only so many bytes are left.
    Truncate(u64),
    /// A range of bytes is zero.
    Zero {
        /// Where it starts.
        at: u64,
        /// How many bytes.
        len: u64,
    },
    /// These bits are turned over, counted from the file's first.
    Flip(Vec<u64>),
    /// Two blocks have changed places.
    Swap(u64, u64),
    /// A block lies where another should.
    Copy {
        /// The block that is there twice.
        from: u64,
        /// The block that is gone.
        to: u64,
    },
    /// A B-tree's page says something else than the rest of the index or its table; its checksum is right.
    Contradict {
        /// What it lies about.
        what: &'static str,
        /// Where, from the file's start.
        at: u64,
        /// What is written there.
        bytes: Vec<u8>,
    },
}

/// A page of an index that lies: about where a row is, a sibling, a child, its level or the root.
fn contradict(random: &mut Random, file: &[u8]) -> Option<Damage> {
    const SPECIAL: usize = BLCKSZ - 16;
    let (pages, _) = file.as_chunks::<BLCKSZ>();
    let blocks = pages.len() as u64;
    let block = 1 + random.below(blocks.saturating_sub(1)) as usize;
    let page = PageRef::new(pages.get(block)?);
    let opaque = Opaque::read(page).ok()?;
    let elsewhere = random.below(blocks + 2) as u32;
    let word = |what, at: usize, word: u32| {
        Some(Damage::Contradict { what, at: (block * BLCKSZ + at) as u64, bytes: word.to_le_bytes().to_vec() })
    };
    match random.below(10) {
        0 => word("right link", SPECIAL + 4, elsewhere),
        1 => word("right link to itself", SPECIAL + 4, block as u32),
        2 => word("left link", SPECIAL, elsewhere),
        3 => word("level", SPECIAL + 8, random.below(4) as u32),
        4 => {
            let bytes = elsewhere.to_le_bytes().to_vec();
            let at = *random.pick(&[24 + 8, 24 + 12, 24 + 16, 24 + 20]);
            Some(Damage::Contradict { what: "root or its level", at, bytes })
        }
        _ => {
            let items: Vec<ItemId> = page.item_ids().map(|(_, id)| id).filter(|id| id.is_normal()).collect();
            let id = items.get(random.below(items.len() as u64) as usize)?;
            let at = (block * BLCKSZ + usize::from(id.offset())) as u64;
            if !opaque.is_leaf() {
                // A block number's high half comes first.
                let bytes = vec![(elsewhere >> 16) as u8, 0, elsewhere as u8, (elsewhere >> 8) as u8];
                return Some(Damage::Contradict { what: "downlink", at, bytes });
            }
            let near = random.below(3);
            let far = *random.pick(&[near, 100, 0xFFFF]) as u16;
            Some(match random.below(3) {
                0 => Damage::Contradict { what: "heap block", at: at + 2, bytes: far.to_le_bytes().to_vec() },
                1 => {
                    let offset = 1 + random.below(250) as u16;
                    Damage::Contradict { what: "line pointer", at: at + 4, bytes: offset.to_le_bytes().to_vec() }
                }
                _ => Damage::Contradict { what: "heap block and line pointer", at, bytes: vec![0xFF; 6] },
            })
        }
    }
}

impl Damage {
    /// A damage to a file. Files of pages have their blocks damaged, and their headers often; a B-tree's pages may lie.
    pub fn choose(random: &mut Random, file: &[u8], pages: bool, btree: bool) -> Self {
        if btree
            && random.below(3) == 0
            && let Some(damage) = contradict(random, file)
        {
            return damage;
        }
        let len = file.len() as u64;
        let block = BLCKSZ as u64;
        let blocks = len / block;
        if !pages || blocks == 0 {
            return match random.below(8) {
                0 => Damage::Truncate(0),
                1 => Damage::Truncate(random.below(len)),
                2 => Damage::Zero { at: 0, len },
                3 => {
                    let at = random.below(len);
                    Damage::Zero { at, len: 1 + random.below((len - at).min(64)) }
                }
                _ => Damage::Flip((0..=random.below(3)).map(|_| random.below(len * 8)).collect()),
            };
        }
        let at = random.below(blocks);
        match random.below(16) {
            0 => Damage::Truncate(0),
            1 => Damage::Truncate(at * block),
            2 => Damage::Truncate(random.below(len)),
            3 => Damage::Zero { at: at * block, len: block },
            4 => {
                let at = random.below(len);
                Damage::Zero { at, len: 1 + random.below((len - at).min(3 * block)) }
            }
            5 => Damage::Zero { at: at * block, len: 1 + random.below(64) },
            6 if blocks > 1 => Damage::Swap(at, (at + 1 + random.below(blocks - 1)) % blocks),
            7 if blocks > 1 => Damage::Copy { from: at, to: (at + 1 + random.below(blocks - 1)) % blocks },
            8..=10 => {
                // The header, the first line pointers, or the special space of a B-tree page.
                let (start, bytes) = *random.pick(&[(0, 24), (24, 64), (block - 16, 16)]);
                let flips = 0..=random.below(2);
                Damage::Flip(flips.map(|_| (at * block + start) * 8 + random.below(bytes * 8)).collect())
            }
            _ => {
                let flips = 0..=random.below(4);
                Damage::Flip(flips.map(|_| at * block * 8 + random.below(block * 8)).collect())
            }
        }
    }

    /// What a file that held `bytes` holds now.
    pub fn apply(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        let block = BLCKSZ;
        match self {
            Damage::Truncate(len) => out.truncate(*len as usize),
            Damage::Zero { at, len } => {
                let end = (at + len).min(out.len() as u64) as usize;
                out[*at as usize..end].fill(0);
            }
            Damage::Flip(bits) => {
                for bit in bits {
                    out[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
            }
            Damage::Swap(a, b) => {
                let (a, b) = (*a as usize * block, *b as usize * block);
                out[a..a + block].copy_from_slice(&bytes[b..b + block]);
                out[b..b + block].copy_from_slice(&bytes[a..a + block]);
            }
            Damage::Copy { from, to } => {
                let (from, to) = (*from as usize * block, *to as usize * block);
                out.copy_within(from..from + block, to);
            }
            Damage::Contradict { at, bytes, .. } => {
                let at = *at as usize;
                out[at..at + bytes.len()].copy_from_slice(bytes);
                let number = at / block;
                if let Some(page) = out.as_chunks_mut::<BLCKSZ>().0.get_mut(number) {
                    let sum = checksum::page_checksum(PageRef::new(page), BlockNumber(number as u32));
                    page[8..10].copy_from_slice(&sum.to_le_bytes());
                }
            }
        }
        out
    }

    /// What sort of damage, for counts.
    pub fn sort(&self) -> &'static str {
        match self {
            Damage::Truncate(_) => "truncated",
            Damage::Zero { .. } => "zeroed",
            Damage::Flip(_) => "bits flipped",
            Damage::Swap(..) | Damage::Copy { .. } => "blocks misplaced",
            Damage::Contradict { .. } => "contradictions",
        }
    }
}

/// The blocks of a damaged file that no reader may take for pages: their checksum, where there are any, or their header is
/// wrong.
pub fn invalid_blocks(bytes: &[u8], checksums: bool) -> Vec<u32> {
    let (pages, _) = bytes.as_chunks::<BLCKSZ>();
    let invalid = pages.iter().enumerate().filter(|(number, page)| {
        let page = PageRef::new(page);
        if page.is_new() && page.bytes().iter().all(|byte| *byte == 0) {
            return false;
        }
        let sum = !checksums || page.is_new() || checksum::is_correct(page, BlockNumber(*number as u32));
        page.verify().is_err() || !sum
    });
    invalid.map(|(number, _)| number as u32).collect()
}
