//! PostgreSQL's `hash_bytes_extended` (after Bob Jenkins' lookup3): 64-bit hashes with a seed, which hash partitions are
//! chosen by. Little-endian only, as the files are. PostgreSQL's 32-bit hash of a value (`hashtext` and its like) is the lower
//! half of the extended one with seed 0.

struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(len: usize, seed: u64) -> Self {
        let start = 0x9e37_79b9_u32.wrapping_add(len as u32).wrapping_add(3_923_095);
        let mut state = State { a: start, b: start, c: start };
        if seed != 0 {
            state.a = state.a.wrapping_add((seed >> 32) as u32);
            state.b = state.b.wrapping_add(seed as u32);
            state.mix();
        }
        state
    }

    fn mix(&mut self) {
        let State { mut a, mut b, mut c } = *self;
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        *self = State { a, b, c };
    }

    fn last(mut self) -> u64 {
        let State { ref mut a, ref mut b, ref mut c } = self;
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(14));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(11));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(25));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(16));
        *a = (*a ^ *c).wrapping_sub(c.rotate_left(4));
        *b = (*b ^ *a).wrapping_sub(a.rotate_left(14));
        *c = (*c ^ *b).wrapping_sub(b.rotate_left(24));
        u64::from(*b) << 32 | u64::from(*c)
    }
}

fn word(bytes: &[u8]) -> u32 {
    let mut le = [0u8; 4];
    for (to, from) in le.iter_mut().zip(bytes) {
        *to = *from;
    }
    u32::from_le_bytes(le)
}

/// `hash_bytes_extended`.
pub fn bytes_extended(key: &[u8], seed: u64) -> u64 {
    let mut state = State::new(key.len(), seed);
    let mut chunks = key.chunks_exact(12);
    for chunk in &mut chunks {
        state.a = state.a.wrapping_add(word(chunk.get(..4).unwrap_or_default()));
        state.b = state.b.wrapping_add(word(chunk.get(4..8).unwrap_or_default()));
        state.c = state.c.wrapping_add(word(chunk.get(8..).unwrap_or_default()));
        state.mix();
    }
    let rest = chunks.remainder();
    state.a = state.a.wrapping_add(word(rest.get(..4.min(rest.len())).unwrap_or_default()));
    state.b = state.b.wrapping_add(word(rest.get(4..8.min(rest.len())).unwrap_or_default()));
    // The lowest byte of c is reserved for the length.
    state.c = state.c.wrapping_add(word(rest.get(8..).unwrap_or_default()) << 8);
    state.last()
}

/// `hash_bytes`: the 32-bit hash.
pub fn bytes(key: &[u8]) -> u32 {
    bytes_extended(key, 0) as u32
}

/// `hash_bytes_uint32_extended`.
pub fn uint32_extended(k: u32, seed: u64) -> u64 {
    let mut state = State::new(4, seed);
    state.a = state.a.wrapping_add(k);
    state.last()
}

/// How `hashint8extended` folds 64 bits into 32, so that equal numbers of every width hash the same.
pub fn fold_i64(v: i64) -> u32 {
    let low = v as u32;
    let high = (v >> 32) as u32;
    low ^ if v >= 0 { high } else { !high }
}
