//! `sha224`, `sha256`, `sha384`, `sha512` (FIPS 180-4), `crc32`, `crc32c`.

use std::sync::LazyLock;

use crate::adapt::*;
use crate::kernel::Entry;

/// The first primes, whose roots the constants are.
fn primes(n: usize) -> Vec<u64> {
    (2_u64..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).take(n).collect()
}

/// The fraction's first 64 bits of the cube root of a small number: ⌊∛n · 2⁶⁴⌋ without its whole part.
fn cube_root_fraction(n: u64) -> u64 {
    // The largest r with r³ ≤ n·2¹⁹², r having 67 bits; by bits from the top, in 256 bits of two halves.
    let mut root: u128 = 0;
    for bit in (0..67).rev() {
        let candidate = root | 1 << bit;
        if cube_at_most(candidate, n) {
            root = candidate;
        }
    }
    root as u64
}

/// Whether c³ ≤ n·2¹⁹², for c below 2⁶⁷.
fn cube_at_most(c: u128, n: u64) -> bool {
    // In limbs of 32 bits.
    let limbs = |mut v: u128| {
        let mut out = Vec::new();
        while v > 0 {
            out.push((v & 0xFFFF_FFFF) as u64);
            v >>= 32;
        }
        out
    };
    let multiply = |a: &[u64], b: &[u64]| {
        let mut out = vec![0_u64; a.len() + b.len() + 1];
        for (i, x) in a.iter().enumerate() {
            let mut carry = 0;
            for (j, y) in b.iter().enumerate() {
                if let Some(place) = out.get_mut(i + j) {
                    let sum = *place + x * y + carry;
                    *place = sum & 0xFFFF_FFFF;
                    carry = sum >> 32;
                }
            }
            if let Some(place) = out.get_mut(i + b.len()) {
                *place += carry;
            }
        }
        out
    };
    let c = limbs(c);
    let mut cube = multiply(&multiply(&c, &c), &c);
    let mut bound = vec![0; 6];
    bound.extend([n & 0xFFFF_FFFF, n >> 32]);
    let length = cube.len().max(bound.len());
    cube.resize(length, 0);
    bound.resize(length, 0);
    cube.iter().rev().le(bound.iter().rev())
}

/// The two widths differ in their word, rounds and shifts only.
macro_rules! sha {
    ($name:ident, $word:ty, $block:literal, $length:ty, $rounds:literal, $constant:expr,
        [$a:literal $b:literal $c:literal] [$d:literal $e:literal $f:literal]
        [$g:literal $h:literal $i:literal] [$j:literal $k:literal $l:literal]) => {
        fn $name(message: &[u8], mut state: [$word; 8]) -> Vec<u8> {
            static CONSTANTS: LazyLock<Vec<$word>> =
                LazyLock::new(|| primes($rounds).into_iter().map($constant).collect());
            let mut padded = message.to_vec();
            padded.push(0x80);
            while (padded.len() + size_of::<$length>()) % $block != 0 {
                padded.push(0);
            }
            padded.extend_from_slice(&(message.len() as $length * 8).to_be_bytes());
            for block in padded.chunks_exact($block) {
                let mut w: Vec<$word> = block
                    .chunks_exact(size_of::<$word>())
                    .map(|c| c.iter().fold(0, |n, b| n << 8 | <$word>::from(*b)))
                    .collect();
                for t in 16..$rounds {
                    let at = |n: usize| w.get(t - n).copied().unwrap_or_default();
                    let (x, y) = (at(15), at(2));
                    let s0 = x.rotate_right($g) ^ x.rotate_right($h) ^ (x >> $i);
                    let s1 = y.rotate_right($j) ^ y.rotate_right($k) ^ (y >> $l);
                    w.push(at(16).wrapping_add(s0).wrapping_add(at(7)).wrapping_add(s1));
                }
                let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
                for (word, constant) in w.iter().zip(CONSTANTS.iter()) {
                    let s1 = e.rotate_right($d) ^ e.rotate_right($e) ^ e.rotate_right($f);
                    let choice = (e & f) ^ (!e & g);
                    let one = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(*constant).wrapping_add(*word);
                    let s0 = a.rotate_right($a) ^ a.rotate_right($b) ^ a.rotate_right($c);
                    let two = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
                    (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
                }
                for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
                    *word = word.wrapping_add(new);
                }
            }
            state.iter().flat_map(|w| w.to_be_bytes()).collect()
        }
    };
}
sha!(sha2_32, u32, 64, u64, 64, |p| (cube_root_fraction(p) >> 32) as u32, [2 13 22][6 11 25][7 18 3][17 19 10]);
sha!(sha2_64, u64, 128, u128, 80, cube_root_fraction, [28 34 39][14 18 41][1 8 7][19 61 6]);

const SHA224: [u32; 8] =
    [0xc105_9ed8, 0x367c_d507, 0x3070_dd17, 0xf70e_5939, 0xffc0_0b31, 0x6858_1511, 0x64f9_8fa7, 0xbefa_4fa4];
const SHA256: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
const SHA384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];
const SHA512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// A cyclic redundancy check of 32 bits, of a reflected polynomial.
fn crc(message: &[u8], polynomial: u32) -> i64 {
    let crc = message.iter().fold(u32::MAX, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |crc, _| if crc & 1 == 1 { crc >> 1 ^ polynomial } else { crc >> 1 })
    });
    i64::from(!crc)
}

/// Appends so many bytes of a digest.
fn put(digest: &[u8], length: usize, out: &mut Vec<u8>) {
    out.extend(digest.iter().take(length));
}

/// Digests.
pub(crate) static KERNELS: &[Entry] = &[
    (3419, |c| {
        write1(c, |v: &[u8], out| {
            put(&sha2_32(v, SHA224), 28, out);
            Ok(())
        })
    }),
    (3420, |c| {
        write1(c, |v: &[u8], out| {
            put(&sha2_32(v, SHA256), 32, out);
            Ok(())
        })
    }),
    (3421, |c| {
        write1(c, |v: &[u8], out| {
            put(&sha2_64(v, SHA384), 48, out);
            Ok(())
        })
    }),
    (3422, |c| {
        write1(c, |v: &[u8], out| {
            put(&sha2_64(v, SHA512), 64, out);
            Ok(())
        })
    }),
    (6364, |c| map1(c, |v: &[u8]| Ok(crc(v, 0xEDB8_8320)))),
    (6365, |c| map1(c, |v: &[u8]| Ok(crc(v, 0x82F6_3B78)))),
];
