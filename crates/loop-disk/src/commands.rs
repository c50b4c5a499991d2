//! What the disk can be told while it runs: one line, one answer.
//!
//! | line | does |
//! |---|---|
//! | `fail write\|flush AFTER once\|place\|forever` | the request after so many good ones answers EIO |
//! | `thin BLOCKS` | only so many 4 KiB blocks that were never written can still be: ENOSPC to the loop device |
//! | `mend` | nothing is wrong any more |
//! | `delay write\|flush MILLISECONDS` | each such request takes that long |
//! | `cut none\|all\|prefix\|writes\|sectors SEED` | power off: what was flushed stays, and that much of the rest |
//! | `power` | power on, and mended |
//! | `count` | `ok writes W flushes F failed N` |

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::faults::{Lasts, On, Plan};
use crate::medium::Survival;
use crate::served::Shared;

/// Obeys one line; the answer.
///
/// # Errors
/// Nothing was done.
pub(crate) fn obey(shared: &Shared, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["fail", on, after, lasts] => {
            let plan = Plan { on: kind(on)?, after: after.parse()?, lasts: lasting(lasts)? };
            shared.medium().faults().plan(plan);
        }
        ["thin", blocks] => shared.medium().faults().set_room(Some(blocks.parse()?)),
        ["mend"] => *shared.medium().faults() = crate::faults::Faults::default(),
        ["delay", on, millis] => {
            let delay = Duration::from_millis(millis.parse()?);
            match kind(on)? {
                On::Write => shared.delays().write = delay,
                On::Flush => shared.delays().flush = delay,
            }
        }
        ["cut", survival, seed] => {
            let mut numbers = Numbers::new(seed.parse()?);
            let cut = shared.medium().cut(surviving(survival)?, &mut |end| numbers.below(end));
            return Ok(format!("ok pending {} survived {}", cut.pending_sectors, cut.survived_sectors));
        }
        ["power"] => shared.medium().power_on(),
        ["count"] => {
            let counts = shared.medium().counts();
            return Ok(format!(
                "ok writes {} flushes {} failed {}",
                counts.writes, counts.flushes, counts.failed
            ));
        }
        _ => bail!("no such command: {line}"),
    }
    Ok("ok".to_owned())
}

fn kind(word: &str) -> Result<On> {
    Ok(match word {
        "write" => On::Write,
        "flush" => On::Flush,
        _ => bail!("`{word}` is neither write nor flush"),
    })
}

fn lasting(word: &str) -> Result<Lasts> {
    let known = [("once", Lasts::Once), ("place", Lasts::AtThatPlace), ("forever", Lasts::ForEver)];
    let found = known.into_iter().find(|(name, _)| *name == word);
    found.map(|(_, lasts)| lasts).with_context(|| format!("`{word}` is none of once, place, forever"))
}

fn surviving(word: &str) -> Result<Survival> {
    let known = [
        ("none", Survival::Nothing),
        ("all", Survival::Everything),
        ("prefix", Survival::Prefix),
        ("writes", Survival::Writes),
        ("sectors", Survival::Sectors),
    ];
    let found = known.into_iter().find(|(name, _)| *name == word);
    found
        .map(|(_, survival)| survival)
        .with_context(|| format!("`{word}` is none of none, all, prefix, writes, sectors"))
}

/// Numbers that follow from a seed: xorshift64* (Vigna, 2016).
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end.max(1)
    }
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
