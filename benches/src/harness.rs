//! Runs contenders in turn, round by round, and compares them by medians and by the ratio within each round.
//!
//! A machine's speed drifts, its device's more so: a ratio is taken between runs that stood next to each other, and the
//! median of these ratios is what is reported and held against a floor.

use std::fmt::Write as _;

use anyhow::Result;

/// Whether more or less of the figure is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    /// A rate.
    More,
    /// A time.
    Less,
}

/// What one run of one contender measured.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sample {
    /// The figure that is compared, in the benchmark's unit.
    pub(crate) figure: f64,
    /// A second figure of the same unit, shown only (a p99, say).
    pub(crate) beside: Option<f64>,
    /// Records made durable by one sync, where syncs were counted.
    pub(crate) records_per_sync: Option<f64>,
}

/// A benchmark: two contenders that do the same work.
pub(crate) struct Benchmark<'a> {
    /// Its name, as given to `--only`.
    pub(crate) name: &'static str,
    /// What the figure counts.
    pub(crate) unit: &'static str,
    /// Which way is better.
    pub(crate) better: Better,
    /// What the ratio to the reference loop must keep, if anything.
    pub(crate) bound: Option<f64>,
    /// What one sync must cover at least, in records, if anything.
    pub(crate) records_per_sync_min: Option<f64>,
    /// The reference loop.
    pub(crate) raw: Box<dyn FnMut(usize) -> Result<Sample> + 'a>,
    /// Ours.
    pub(crate) ours: Box<dyn FnMut(usize) -> Result<Sample> + 'a>,
}

/// A benchmark's row.
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) missed: Option<String>,
}

/// The table's head.
pub(crate) fn head() -> String {
    format!(
        "{:<16} {:>10} {:>12} {:>12} {:>9} {:>9}  {:>15}  {}",
        "benchmark", "unit", "raw", "pq", "pq/raw", "bound", "records/sync", "beside (raw, pq)"
    )
}

/// Runs `rounds` rounds after one that is not counted.
pub(crate) fn run(mut benchmark: Benchmark<'_>, rounds: usize) -> Result<Row> {
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        // Who goes first changes from round to round: neither always meets the other's leftovers.
        let (first, second) = if round % 2 == 0 {
            let first = (benchmark.raw)(round)?;
            (first, (benchmark.ours)(round)?)
        } else {
            let second = (benchmark.ours)(round)?;
            ((benchmark.raw)(round)?, second)
        };
        if round > 0 {
            raw.push(first);
            ours.push(second);
        }
    }
    Ok(row(&benchmark, &raw, &ours))
}

fn row(benchmark: &Benchmark<'_>, raw: &[Sample], ours: &[Sample]) -> Row {
    let figures = |samples: &[Sample]| median(samples.iter().map(|sample| sample.figure).collect());
    let ratio = median(raw.iter().zip(ours).map(|(raw, ours)| ours.figure / raw.figure).collect());
    let per_sync = |samples: &[Sample]| {
        let known: Vec<_> = samples.iter().filter_map(|sample| sample.records_per_sync).collect();
        (!known.is_empty()).then(|| median(known))
    };
    let (bound_text, missed) = judge(benchmark, ratio, per_sync(ours));
    let mut text = format!(
        "{:<16} {:>10} {:>12} {:>12} {:>9.2} {:>9}  {:>15}",
        benchmark.name,
        benchmark.unit,
        short(figures(raw)),
        short(figures(ours)),
        ratio,
        bound_text,
        match (per_sync(raw), per_sync(ours)) {
            (Some(raw), Some(ours)) => format!("{} / {}", short(raw), short(ours)),
            _ => "-".to_owned(),
        },
    );
    let beside = |samples: &[Sample]| median(samples.iter().filter_map(|sample| sample.beside).collect());
    if raw.iter().chain(ours).any(|sample| sample.beside.is_some()) {
        let _infallible = write!(text, "  {} / {}", short(beside(raw)), short(beside(ours)));
    }
    Row { text, missed }
}

fn judge(benchmark: &Benchmark<'_>, ratio: f64, per_sync: Option<f64>) -> (String, Option<String>) {
    let mut missed = None;
    let text = match (benchmark.bound, benchmark.better) {
        (Some(bound), Better::More) => {
            if ratio < bound {
                missed = Some(format!("{}: ratio {ratio:.2} is below {bound}", benchmark.name));
            }
            format!(">= {bound}")
        }
        (Some(bound), Better::Less) => {
            if ratio > bound {
                missed = Some(format!("{}: ratio {ratio:.2} is above {bound}", benchmark.name));
            }
            format!("<= {bound}")
        }
        (None, _) => "-".to_owned(),
    };
    if let (Some(least), Some(seen)) = (benchmark.records_per_sync_min, per_sync)
        && seen < least
    {
        missed = Some(format!("{}: {seen:.1} records a sync, below {least}", benchmark.name));
    }
    (text, missed)
}

/// The middle of the values; 0 if there are none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(upper) = values.get(values.len() / 2) else { return 0.0 };
    if values.len().is_multiple_of(2) { (values[values.len() / 2 - 1] + upper) / 2.0 } else { *upper }
}

/// Three figures or so, with the thousands' letter.
pub(crate) fn short(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.2} G", value / 1e9),
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.1} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    fn benchmark(better: Better, bound: f64) -> Benchmark<'static> {
        Benchmark {
            name: "b",
            unit: "u",
            better,
            bound: Some(bound),
            records_per_sync_min: Some(16.0),
            raw: Box::new(|_| {
                Ok(Sample { figure: 100.0, records_per_sync: Some(64.0), ..Sample::default() })
            }),
            ours: Box::new(|_| {
                Ok(Sample { figure: 50.0, records_per_sync: Some(20.0), ..Sample::default() })
            }),
        }
    }

    #[test]
    fn a_bound_is_held_at_equality_and_missed_beyond() {
        assert!(run(benchmark(Better::More, 0.5), 3).is_ok_and(|row| row.missed.is_none()));
        assert!(run(benchmark(Better::More, 0.51), 3).is_ok_and(|row| row.missed.is_some()));
        assert!(run(benchmark(Better::Less, 0.5), 3).is_ok_and(|row| row.missed.is_none()));
        assert!(run(benchmark(Better::Less, 0.49), 3).is_ok_and(|row| row.missed.is_some()));
    }
}
