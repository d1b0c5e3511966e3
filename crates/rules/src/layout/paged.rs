//! A persistent array in two levels: a copy shares every page with its origin until one of the two changes it.
//!
//! Contract: reading is two loads. Changing an element copies its page if that is shared, and nothing else.

use std::sync::Arc;

/// Elements of a page.
const PAGE: usize = 256;

/// An array in pages that its copies share.
#[derive(Debug, Clone)]
pub(crate) struct Paged<T> {
    pages: Vec<Arc<[T]>>,
    len: usize,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), len: 0 }
    }
}

impl<T: Clone + Default> Paged<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.pages.get(index / PAGE)?.get(index % PAGE)
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(PAGE) {
            self.pages.push(std::iter::repeat_n(T::default(), PAGE).collect());
        }
        self.len += 1;
        self.set(self.len - 1, value);
    }

    /// Changes an element; an index past the end changes nothing.
    pub(crate) fn set(&mut self, index: usize, value: T) {
        let page = self.pages.get_mut(index / PAGE);
        if let Some(place) = page.and_then(|page| Arc::make_mut(page).get_mut(index % PAGE)) {
            *place = value;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|page| page.iter()).take(self.len)
    }

    /// Bytes and allocations of the array itself.
    pub(crate) fn cost(&self) -> (usize, usize) {
        let page = PAGE * size_of::<T>() + 2 * size_of::<usize>();
        (self.pages.len() * (page + size_of::<Arc<[T]>>()), self.pages.len() + 1)
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(&self) -> usize {
        PAGE * size_of::<T>()
    }

    /// Counts the pages that `other` does not share.
    #[cfg(test)]
    pub(crate) fn pages_apart(&self, other: &Self) -> usize {
        let pairs = self.pages.iter().zip(&other.pages);
        pairs.filter(|(mine, theirs)| !Arc::ptr_eq(mine, theirs)).count()
            + self.pages.len().abs_diff(other.pages.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_changes_copies_one_page() {
        let mut first = Paged::default();
        (0..1000).for_each(|value| first.push(value));
        let mut second = first.clone();
        second.set(300, 7);
        assert_eq!((first.get(300), second.get(300)), (Some(&300), Some(&7)));
        assert_eq!(second.pages_apart(&first), 1);
        second.push(1000);
        assert_eq!((first.len(), second.len(), second.get(1000)), (1000, 1001, Some(&1000)));
        assert_eq!(second.pages_apart(&first), 2, "the last page had room");
        assert!(first.iter().copied().eq(0..1000));
        second.set(5000, 1);
        assert_eq!(second.get(5000), None);
    }
}
