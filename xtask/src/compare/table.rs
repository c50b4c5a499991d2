//! The figures as a table of docs/durability.md.

use std::fmt::Write as _;

use super::flips::Flips;
use super::mounted::Kind;
use super::rounds::Rounds;

/// Power cuts on one file system.
pub(super) enum Cuts {
    Made(Rounds),
    Skipped(String),
}

impl Cuts {
    /// Why there were none.
    pub(super) fn skipped(&self) -> Option<String> {
        match self {
            Self::Made(_) => None,
            Self::Skipped(reason) => Some(reason.clone()),
        }
    }

    fn rounds(&self) -> Option<&Rounds> {
        match self {
            Self::Made(rounds) => Some(rounds),
            Self::Skipped(_) => None,
        }
    }

    fn cell(&self) -> String {
        self.rounds().map_or_else(|| "SKIPPED".to_owned(), rounds_cell)
    }
}

/// One crate's figures.
pub(super) struct Row {
    pub(super) name: &'static str,
    setting: String,
    pub(super) kills: Rounds,
    pub(super) cuts: [Cuts; 2],
    pub(super) flips: Flips,
}

impl Row {
    /// Nothing is counted yet.
    pub(super) fn new(name: &'static str, setting: String) -> Self {
        let cuts = [Cuts::Made(Rounds::default()), Cuts::Made(Rounds::default())];
        Self { name, setting, kills: Rounds::default(), cuts, flips: Flips::default() }
    }

    fn rounds(&self) -> impl Iterator<Item = &Rounds> {
        std::iter::once(&self.kills).chain(self.cuts.iter().filter_map(Cuts::rounds))
    }

    /// Records lost to kills and power cuts.
    pub(super) fn lost(&self) -> u64 {
        self.rounds().map(|rounds| rounds.lost).sum()
    }

    /// Power cuts made.
    pub(super) fn cuts_made(&self) -> u64 {
        self.cuts.iter().filter_map(Cuts::rounds).map(|rounds| rounds.rounds).sum()
    }

    /// Payloads that nobody wrote.
    pub(super) fn wrong(&self) -> u64 {
        self.rounds().map(|rounds| rounds.wrong).sum::<u64>() + self.flips.wrong
    }

    /// Everything that may not be with pq.
    pub(super) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut rule = |count: u64, what: &str| {
            if count > 0 {
                broken.push(format!("{}: {count} {what}", self.name));
            }
        };
        rule(self.lost(), "acknowledged records lost");
        rule(self.wrong(), "wrong payloads");
        for rounds in self.rounds() {
            rule(rounds.refused + rounds.panicked + rounds.hung, "times it did not open");
        }
        rule(self.flips.refused + self.flips.panicked + self.flips.hung, "flips after which it did not open");
        rule(self.flips.silent, "flips whose loss was not reported");
        broken
    }

    /// Every figure of this crate.
    pub(super) fn details(&self) -> String {
        let mut text = format!("{} ({})\n  kill {:?}\n", self.name, self.setting, self.kills);
        for (kind, cuts) in Kind::ALL.into_iter().zip(&self.cuts) {
            match cuts {
                Cuts::Made(rounds) => {
                    let _ = writeln!(text, "  power cut, {} {rounds:?}", kind.name());
                }
                Cuts::Skipped(reason) => {
                    let _ = writeln!(text, "  power cut SKIPPED, {reason}");
                }
            }
        }
        let _ = write!(text, "  flips {:?}", self.flips);
        text
    }
}

/// `3 in 2 of 50`: three records in two of fifty rounds; what did not open behind it.
fn rounds_cell(rounds: &Rounds) -> String {
    let mut cell = format!("{} of {}", rounds.lost, rounds.acknowledged);
    for (count, what) in [
        (rounds.wrong, "wrong"),
        (rounds.refused, "refused"),
        (rounds.panicked, "panicked"),
        (rounds.hung, "hung"),
    ] {
        if count > 0 {
            let _ = write!(cell, ", {count} × {what}");
        }
    }
    cell
}

/// The table.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| crate, setting | kill -9: lost of acknowledged | power cut, ext4 | power cut, XFS | wrong payloads after a flip | flips that lost records, most by one | of these unreported | did not open: refused, panicked, hung |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let flips = &row.flips;
        let _ = writeln!(
            text,
            "| {}: {} | {} | {} | {} | {} of {} | {}, {} | {} | {}, {}, {} |",
            row.name,
            row.setting,
            rounds_cell(&row.kills),
            row.cuts[0].cell(),
            row.cuts[1].cell(),
            flips.wrong,
            flips.flips,
            flips.lossy,
            flips.lost_max,
            flips.silent,
            flips.refused,
            flips.panicked,
            flips.hung
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_ours_breaks_a_rule() {
        let row = || Row::new("pq", String::new());
        assert!(row().broken().is_empty());
        let mut lost = row();
        lost.kills.lost = 1;
        let mut cut = row();
        cut.cuts[1] = Cuts::Made(Rounds { refused: 1, ..Rounds::default() });
        let mut silent = row();
        silent.flips.silent = 1;
        let mut wrong = row();
        wrong.flips.wrong = 1;
        for row in [lost, cut, silent, wrong] {
            assert_eq!(row.broken().len(), 1);
        }
    }
}
