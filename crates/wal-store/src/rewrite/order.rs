//! In which order files are put in place.
//!
//! A segment's end is named by the one behind it. While only one of two is in place, the name must not be less than what is there
//! (the rest would be dead) and must not reach into dead bytes (they would come back). So, of two neighbours:
//!
//! ```text
//!   the end moves down:  the older file first, then the name
//!   the end moves up:    cut the older file at its old end, if it is longer; the name; then the older file
//! ```

use wal_format::Predecessor;

use super::{Draft, Rewrite, RewriteKind, header_of};
use crate::StoreContext;

pub(super) fn rewrites(ctx: &StoreContext, drafts: &[Draft], unsynced_bytes_max: u64) -> Vec<Rewrite> {
    let mut ordered = Vec::new();
    // Those that must wait for the one behind them.
    let mut waiting: Vec<Rewrite> = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| drafts.get(before));
        let before = before.map(|before| Predecessor { id: before.info.id, end_offset: before.new_end() });
        let named = drafts.get(index + 1).and_then(|next| named_end(draft, next));
        let rewrite = rewrite(ctx, draft, before, unsynced_bytes_max);
        let Some(rewrite) = rewrite else {
            ordered.extend(waiting.drain(..).rev());
            continue;
        };
        let grows = named.is_some_and(|named| rewrite.bytes_after > named);
        if let Some(named) = named.filter(|named| grows && draft.link.found.len > *named) {
            ordered.push(cut(&rewrite, named));
        }
        waiting.push(rewrite);
        if !grows {
            ordered.extend(waiting.drain(..).rev());
        }
    }
    ordered.extend(waiting.drain(..).rev());
    ordered
}

/// Where `next` says that `draft` ends.
fn named_end(draft: &Draft, next: &Draft) -> Option<u64> {
    let named = next.link.found.head.header()?.predecessor?;
    (named.id == draft.info.id).then_some(named.end_offset)
}

fn rewrite(
    ctx: &StoreContext,
    draft: &Draft,
    before: Option<Predecessor>,
    unsynced_bytes_max: u64,
) -> Option<Rewrite> {
    let header = header_of(ctx, draft, before, unsynced_bytes_max);
    let follows = draft.link.found.head.header() != Some(&header);
    if !draft.is_mended() && !follows {
        return None;
    }
    let seqs = (draft.info.first_seq, draft.info.end_seq);
    Some(Rewrite {
        segment: draft.info.id,
        findings: if draft.is_mended() { draft.findings.clone() } else { Vec::new() },
        kind: if draft.is_mended() { RewriteKind::Mend } else { RewriteKind::Follow },
        bytes_before: draft.link.found.len,
        bytes_after: draft.new_end(),
        records_count: draft.copied.records_count,
        header,
        seqs,
        pieces: draft.pieces.clone(),
    })
}

/// As it is up to `end`.
fn cut(rewrite: &Rewrite, end: u64) -> Rewrite {
    Rewrite { kind: RewriteKind::Cut, bytes_after: end, findings: Vec::new(), ..rewrite.clone() }
}
