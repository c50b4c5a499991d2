//! Which benchmarks there are, who contends, and what the ratio must keep.

use std::path::Path;

use anyhow::Result;

use crate::floor::FioLoad;
use crate::harness::{Benchmark, Better, Sample};
use crate::load::Load;
use crate::{floor, ours, reference};

/// The reference loop may differ from `fio` by this share.
const FIO_DIFFERENCE_MAX: f64 = 0.10;

type Contender = fn(&Path, &Load) -> Result<Sample>;

/// All benchmarks of one size, measuring below `place`.
pub(crate) fn all<'a>(load: &'a Load, place: &'a Path) -> Vec<Benchmark<'a>> {
    let define = |name, unit, (better, bound), raw: Contender, ours: Contender| Benchmark {
        name,
        unit,
        better,
        bound,
        records_per_sync_min: None,
        raw: Box::new(move |round| in_new_folder(place, &format!("{name}-raw-{round}"), load, raw)),
        ours: Box::new(move |round| in_new_folder(place, &format!("{name}-pq-{round}"), load, ours)),
    };
    let more = |bound| (Better::More, Some(bound));
    let mut group = define("group-64", "records/s", (Better::More, None), reference::group, ours::group);
    group.records_per_sync_min = Some(16.0);
    vec![
        define("append", "µs p50", (Better::Less, Some(1.3)), reference::append, ours::append),
        define("batch-1000", "B/s", more(0.7), reference::batch, ours::batch),
        group,
        define("put", "records/s", more(0.4), reference::put, ours::put),
        define("drain", "records/s", more(0.5), reference::drain, ours::drain),
        define("drain-map", "records/s", (Better::More, None), reference::drain, ours::drain_map),
        define("end-to-end", "records/s", more(0.5), reference::end_to_end, ours::end_to_end),
    ]
}

/// A fresh folder for one run, gone afterwards.
fn in_new_folder(place: &Path, name: &str, load: &Load, run: Contender) -> Result<Sample> {
    let folder = place.join(name);
    std::fs::create_dir_all(&folder)?;
    let sample = run(&folder, load);
    std::fs::remove_dir_all(&folder)?;
    sample
}

/// Holds the reference loop itself against `fio`; returns what was missed.
pub(crate) fn reference_beside_fio(place: &Path) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    // Long rounds, since `fio` is a tenth slower in its first hundred writes; many, since the device drifts between two of them.
    for (bytes, writes, rounds, name) in [(4 << 10, 1000, 15, "4 KiB"), (1 << 20, 200, 9, "1 MiB")] {
        match floor::beside_fio(place, &FioLoad { bytes, writes, rounds })? {
            None => println!("reference beside fio, {name}: SKIPPED, no fio here"),
            Some(ratio) => {
                println!("reference beside fio --fdatasync=1, {name}: time {ratio:.2}x");
                if (ratio - 1.0).abs() > FIO_DIFFERENCE_MAX {
                    missed.push(format!("the reference loop takes {ratio:.2} of fio's time at {name}"));
                }
            }
        }
    }
    Ok(missed)
}
