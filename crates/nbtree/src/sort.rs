//! Sorting with a comparison that can fail, in place: `slice::sort_by` may panic when a failed comparison makes the
//! order inconsistent, and the stable one allocates.

use std::cmp::Ordering;

/// Heap sort. The order of equal elements is not kept.
pub(crate) fn sort<T, E>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Result<Ordering, E>) -> Result<(), E> {
    for root in (0..items.len() / 2).rev() {
        sift_down(items, root, &mut compare)?;
    }
    for end in (1..items.len()).rev() {
        items.swap(0, end);
        if let Some(heap) = items.get_mut(..end) {
            sift_down(heap, 0, &mut compare)?;
        }
    }
    Ok(())
}

fn sift_down<T, E>(
    heap: &mut [T],
    mut root: usize,
    compare: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<(), E> {
    loop {
        let left = 2 * root + 1;
        let Some(left_item) = heap.get(left) else { return Ok(()) };
        let child = match heap.get(left + 1) {
            Some(right_item) if compare(left_item, right_item)?.is_lt() => left + 1,
            _ => left,
        };
        match (heap.get(root), heap.get(child)) {
            (Some(parent), Some(item)) if compare(parent, item)?.is_lt() => heap.swap(root, child),
            _ => return Ok(()),
        }
        root = child;
    }
}

/// The first index in `from..to` where `before` is false; all where it is true must come first.
pub(crate) fn partition_point<E>(
    from: usize,
    to: usize,
    mut before: impl FnMut(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sorts_every_small_input() {
        for len in 0..6usize {
            for code in 0..5usize.pow(len as u32) {
                let mut items: Vec<usize> = (0..len as u32).map(|i| code / 5usize.pow(i) % 5).collect();
                let mut wanted = items.clone();
                wanted.sort_unstable();
                sort(&mut items, |a, b| Ok::<_, ()>(a.cmp(b))).unwrap();
                assert_eq!(items, wanted);
            }
        }
        assert_eq!(sort(&mut [2, 1], |_, _| Err("no order")), Err("no order"));
    }

    #[test]
    fn partition_point_is_the_first_not_before() {
        for wanted in 0..9 {
            assert_eq!(partition_point(0, 8, |i| Ok::<_, ()>(i < wanted)), Ok(wanted.min(8)));
        }
    }
}
