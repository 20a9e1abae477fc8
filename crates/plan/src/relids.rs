//! Sets of range table indexes.

/// A set of range table indexes (from 1), as a bit string without trailing zero words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relids(Vec<u64>);

impl Relids {
    /// The set of one.
    pub fn one(rti: usize) -> Self {
        let mut out = Self::default();
        out.insert(rti);
        out
    }

    /// Adds a member.
    pub fn insert(&mut self, rti: usize) {
        let word = rti / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(w) = self.0.get_mut(word) {
            *w |= 1 << (rti % 64);
        }
    }

    /// Whether `rti` is a member.
    pub fn contains(&self, rti: usize) -> bool {
        self.0.get(rti / 64).is_some_and(|w| w >> (rti % 64) & 1 == 1)
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many members.
    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &w)| (0..64).filter(move |b| w >> b & 1 == 1).map(move |b| i * 64 + b))
    }

    /// The only member.
    pub fn single(&self) -> Option<usize> {
        let mut members = self.iter();
        let first = members.next()?;
        members.next().is_none().then_some(first)
    }

    /// Both sets' members.
    pub fn union(&self, other: &Relids) -> Relids {
        let (long, short) = if self.0.len() >= other.0.len() { (self, other) } else { (other, self) };
        let mut out = long.clone();
        for (a, b) in out.0.iter_mut().zip(&short.0) {
            *a |= b;
        }
        out
    }

    /// Adds all of another set's members.
    pub fn add(&mut self, other: &Relids) {
        *self = self.union(other);
    }

    /// Whether all members are in `other`.
    pub fn is_subset(&self, other: &Relids) -> bool {
        self.0.iter().enumerate().all(|(i, w)| w & !other.0.get(i).copied().unwrap_or(0) == 0)
    }

    /// Whether some member is in `other`.
    pub fn overlaps(&self, other: &Relids) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

impl FromIterator<usize> for Relids {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        let mut out = Self::default();
        members.into_iter().for_each(|m| out.insert(m));
        out
    }
}
