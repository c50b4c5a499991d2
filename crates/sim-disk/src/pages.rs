//! Sparse bytes in shared pages: cheap to clone, absent pages are zeros.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page: what is shared between clones.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Bytes of a sector: what survives or is lost as one.
pub(crate) const SECTOR_BYTES: u64 = 512;

const PAGE: usize = PAGE_BYTES as usize;
const SECTOR: usize = SECTOR_BYTES as usize;

/// The content of one file, without its length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

impl Pages {
    pub(crate) fn page_count(&self) -> u64 {
        self.pages.len() as u64
    }

    pub(crate) fn has_page(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// Makes sure that a page takes space.
    pub(crate) fn reserve_page(&mut self, page: u64) {
        self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
    }

    /// The pages at or above the one that holds `from`.
    pub(crate) fn pages_from(&self, from: u64) -> Vec<u64> {
        self.pages.range(from / PAGE_BYTES..).map(|(page, _)| *page).collect()
    }

    /// Only these pages, shared, as they are now.
    pub(crate) fn some_pages(&self, pages: impl Iterator<Item = u64>) -> Self {
        let shared = |page: u64| Some((page, Arc::clone(self.pages.get(&page)?)));
        Self { pages: pages.filter_map(shared).collect() }
    }

    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        for_each_piece(offset, buf.len(), |page, in_page, in_buf| {
            let target = &mut buf[in_buf];
            match self.pages.get(&page) {
                Some(bytes) => target.copy_from_slice(&bytes[in_page]),
                None => target.fill(0),
            }
        });
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for_each_piece(offset, bytes.len(), |page, in_page, in_buf| {
            let target = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(target)[in_page].copy_from_slice(&bytes[in_buf]);
        });
    }

    /// Takes one sector over from another content.
    pub(crate) fn copy_sector(&mut self, from: &Self, sector: u64) {
        let offset = sector * SECTOR_BYTES;
        let page = offset / PAGE_BYTES;
        if from.has_page(page) || self.has_page(page) {
            let mut bytes = [0; SECTOR];
            from.read(offset, &mut bytes);
            self.write(offset, &bytes);
        }
    }

    /// Zeros everything from `len` on.
    pub(crate) fn cut(&mut self, len: u64) {
        let whole = self.pages.split_off(&len.div_ceil(PAGE_BYTES));
        drop(whole);
        if let Some(page) = self.pages.get_mut(&(len / PAGE_BYTES)) {
            Arc::make_mut(page)[(len % PAGE_BYTES) as usize..].fill(0);
        }
    }
}

/// Splits a range of bytes into its pieces within pages: (page, range in it, range in the buffer).
fn for_each_piece(
    offset: u64,
    len: usize,
    mut piece: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let start = (at % PAGE_BYTES) as usize;
        let n = (PAGE - start).min(len - done);
        piece(at / PAGE_BYTES, start..start + n, done..done + n);
        done += n;
    }
}
