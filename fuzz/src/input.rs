//! An input, taken apart from its front; zeros follow its end.

pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn u8(&mut self) -> u8 {
        let [first, rest @ ..] = self.0 else { return 0 };
        self.0 = rest;
        *first
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// One of `of`.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.u8()) % of.len()]
    }

    /// Up to `len` bytes.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Two parts: as many bytes as the next two say, and the rest.
    pub fn halves(&mut self) -> (&'a [u8], &'a [u8]) {
        let len = usize::from(self.u16());
        (self.bytes(len), self.0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
