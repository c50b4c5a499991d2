//! The chain: what each file is to the others, by names and headers alone.
//!
//! ```text
//!   floor's id      header names its predecessor and where it ends
//!      |  1 <────── 2      (3)  <────── 4        5
//!   R0 |                   void          newest   no header: tail
//!                          by R0b: 4 names 2
//! ```
//!
//! Invariant: only a valid header voids a file or ends another one.

use wal_format::{Predecessor, SegmentId, Seq};

use super::facts::{Found, Head};

/// What a file is, before its batches are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// R0: below the floor's segment id.
    Retired,
    /// R0b: strictly between a segment and the predecessor its header names.
    Void,
    /// R9: says it is another segment of this stream, or belongs to another stream.
    Rival,
    /// With a valid header.
    Linked,
    /// R6: without, and an older file than the newest with one.
    HeadlessInside,
    /// R5: without, and newer than any with one.
    HeadlessTail,
}

/// A file with its role and what its neighbours say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) found: Found,
    pub(crate) role: Role,
    /// Where it ends, if a valid header names it as predecessor.
    pub(crate) named_end: Option<u64>,
}

impl Link {
    pub(crate) fn id(&self) -> SegmentId {
        self.found.id
    }

    /// First seq by its header.
    pub(crate) fn header_first(&self) -> Option<Seq> {
        self.found.head.header().map(|header| header.first_seq)
    }

    /// Whether its header names that one as its predecessor.
    pub(crate) fn names(&self, id: SegmentId) -> bool {
        self.predecessor().is_some_and(|named| named.id == id)
    }

    fn predecessor(&self) -> Option<Predecessor> {
        self.found.head.header().and_then(|header| header.predecessor)
    }
}

/// How far above every id that something names a stream can be: it takes an id for each file it begins.
const REACH: u64 = 1 << 32;

/// The highest id this stream can have reached.
pub(crate) fn reach(floor_segment: SegmentId, found: &[Found]) -> SegmentId {
    let named = found.iter().filter(|found| found.head.header().is_some()).map(|found| found.id);
    let named = named.max().unwrap_or(floor_segment).max(floor_segment);
    SegmentId::new(named.get().saturating_add(REACH))
}

/// Gives every file its role. `found` ascends by id.
pub(crate) fn chain(floor_segment: SegmentId, reach: SegmentId, found: &[Found]) -> Vec<Link> {
    let mut links: Vec<Link> = found
        .iter()
        .map(|found| Link { found: *found, role: first_role(floor_segment, reach, found), named_end: None })
        .collect();
    void_between(&mut links);
    for index in 0..links.len() {
        let linked = links.get(index).filter(|link| link.role == Role::Linked);
        let Some(named) = linked.and_then(Link::predecessor) else { continue };
        let found = links.binary_search_by_key(&named.id, Link::id).ok();
        if let Some(link) = found.and_then(|found| links.get_mut(found)) {
            link.named_end = Some(named.end_offset);
        }
    }
    let newest = links.iter().filter(|link| link.role == Role::Linked).map(Link::id).max();
    for link in &mut links {
        if link.role == Role::HeadlessTail && newest.is_some_and(|newest| link.id() < newest) {
            link.role = Role::HeadlessInside;
        }
    }
    links
}

fn first_role(floor_segment: SegmentId, reach: SegmentId, found: &Found) -> Role {
    match found.head {
        _ if found.id < floor_segment => Role::Retired,
        Head::Sound(_) | Head::Mended(_) => Role::Linked,
        // The header of a retired segment: a file that was recycled, and whose new header never arrived.
        Head::Claims(id) if id < floor_segment => Role::HeadlessTail,
        Head::Claims(_) | Head::Foreign => Role::Rival,
        // Batches of ours under an id that was never ours: somebody's copy.
        Head::Absent if found.id > reach => Role::Rival,
        Head::Absent | Head::Newer(_) => Role::HeadlessTail,
    }
}

/// R0b, from the newest valid header down. A missing predecessor does not break the chain: it goes on at the next valid
/// header below it. One pass, however many files there are.
fn void_between(links: &mut [Link]) {
    let newest_of = |links: &[Link]| links.iter().rposition(|link| link.role == Role::Linked);
    let mut at = newest_of(links);
    while let Some(index) = at {
        let Some(link) = links.get(index) else { return };
        let named = link.predecessor().map_or(SegmentId::new(0), |named| named.id);
        // The first file above the predecessor.
        let above = links.partition_point(|link| link.id() <= named).min(index);
        for link in links.get_mut(above..index).unwrap_or_default() {
            if matches!(link.role, Role::Linked | Role::HeadlessTail) {
                link.role = Role::Void;
            }
        }
        // The predecessor itself, if it is there with a valid header; else the next one below.
        at = newest_of(links.get(..above).unwrap_or_default());
    }
}
