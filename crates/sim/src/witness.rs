//! Fixed scenarios for what random runs do not do: settings changed, files lost, files planted by somebody else, ids across restarts.
//!
//! Each is a function of a seed, which draws sizes and what survives the power cuts. They know the core and the disk, and judge by what
//! a client or a user sees.

use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, DiskError, Op, SyncSite};
use pq::core::{Core, CoreStream, Seed};
use pq::{Now, Options, SegmentId, Start, StreamSettings, SyncSetting, WallTime};
use sim_disk::{Fault, Moment, On, SimDisk, Survival, errno};
use wal_store::segment_path;

use crate::random::{Draw, Random, mix};
use crate::violation::{Checked, Kind, Violation, ensure};

const SITE: SyncSite = SyncSite::new("witness");
/// Calls that creating a queue makes, and some more.
const CALLS_OF_CREATION: u64 = 45;

/// Runs all of them on fresh disks; `prepare` may switch something off on each.
///
/// # Errors
/// The first broken promise.
pub fn run(seed: u64, prepare: &dyn Fn(&SimDisk)) -> Checked {
    let scenarios: [fn(Witness) -> Checked; 7] = [
        new_queues_open,
        settings_stay,
        what_a_kill_left_stays,
        losses_are_told_once,
        planted_files_stay,
        ids_are_new,
        failed_creations_do_not_outlive_their_stream,
    ];
    for scenario in scenarios {
        let disk = SimDisk::new();
        // What a failed sync leaves follows from it.
        disk.set_seed(mix(seed).max(1));
        prepare(&disk);
        let witness = Witness { disk, random: Random::new(seed), opens: 0 };
        let ran = catch_unwind(AssertUnwindSafe(|| scenario(witness)));
        let ran = ran.unwrap_or_else(|_| Err(Violation::new(Kind::Panicked, "in a fixed scenario")));
        ran.map_err(|found| Violation { seed, ..found })?;
    }
    Ok(())
}

/// A disk, what draws, and how often the queue was opened.
struct Witness {
    disk: SimDisk,
    random: Random,
    opens: u64,
}

fn unexpected<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> Violation {
    move |error| Violation::new(Kind::Unexpected, format!("{what}: {error}"))
}

fn now() -> Now {
    Now { wall: WallTime::from_nanos(1 << 60), ..Now::default() }
}

fn stream(core: &Core, name: &str, settings: Option<&StreamSettings>) -> Checked<CoreStream> {
    core.open_stream(name, settings, now()).map_err(unexpected("open a stream"))
}

fn segment(stream: &CoreStream, id: u64) -> PathBuf {
    segment_path(&stream.log().context().dir, SegmentId::new(id))
}

impl Witness {
    fn open(&mut self) -> Checked<Core> {
        self.opens += 1;
        let disk = Arc::new(self.disk.clone());
        Core::open(disk, Options::default(), Seed::Fixed(self.opens), now()).map_err(unexpected("open"))
    }

    /// The power goes, and takes nothing, or some of what is unsynced.
    fn cut(&mut self, core: Core) {
        let survival = match self.random.below(3) {
            0 => Survival::Nothing,
            _ => Survival::Seed(self.random.next_number()),
        };
        self.disk = self.disk.power_cut(&survival);
        core.abandon();
    }

    /// Segments of a few records each.
    fn fill(&mut self, stream: &CoreStream, segments: u64) -> Checked {
        for _ in 0..segments {
            for _ in 0..self.random.between(1, 4) {
                let payload = vec![b'p'; usize::try_from(self.random.below(600)).unwrap_or(0)];
                stream.log().append(payload.as_slice(), now()).map_err(unexpected("append"))?;
            }
            stream.log().rotate(now()).map_err(unexpected("rotate"))?;
        }
        Ok(())
    }

    /// Somebody else changes files in a directory, durably.
    fn meddle(&self, path: &Path, change: impl FnOnce(&SimDisk) -> Result<(), DiskError>) -> Checked {
        let dir = path.parent().unwrap_or(Path::new(""));
        change(&self.disk).and_then(|()| self.disk.sync_dir(dir, SITE)).map_err(unexpected("meddle"))
    }
}

/// A queue whose creation was stopped anywhere is there, or is created by the next open.
fn new_queues_open(mut witness: Witness) -> Checked {
    let call = witness.random.between(1, CALLS_OF_CREATION);
    let moment = witness.random.pick(Moment::Before, &[Moment::Middle, Moment::After]);
    witness.disk.plan(Fault::halt(On::Any, call, moment));
    let stopped = witness.open().ok();
    let survival = Survival::Seed(witness.random.next_number());
    witness.disk = witness.disk.power_cut(&survival);
    stopped.into_iter().for_each(Core::abandon);
    let core = witness.open()?;
    let stream = stream(&core, "s", None)?;
    witness.fill(&stream, 1)?;
    drop(stream);
    witness.cut(core);
    let core = witness.open()?;
    let names = core.names();
    ensure(names == ["s"], Kind::Lost, || format!("of one stream in a new queue there is {names:?}"))
}

/// Settings that were accepted are there after a power cut.
fn settings_stay(mut witness: Witness) -> Checked {
    let core = witness.open()?;
    stream(&core, "first", None)?;
    drop(stream(&core, "s", None)?);
    let settings = StreamSettings { sync: SyncSetting::OnRotate, ..StreamSettings::default() };
    drop(stream(&core, "s", Some(&settings))?);
    witness.cut(core);
    let core = witness.open()?;
    let kept = stream(&core, "s", None)?.log().settings().sync;
    ensure(kept == settings.sync, Kind::Lost, || {
        format!("a stream's settings were accepted, and are {kept:?}")
    })
}

/// A stream whose creation was killed before its sync, and which is there all the same, stays with what is stored in it.
fn what_a_kill_left_stays(mut witness: Witness) -> Checked {
    let core = witness.open()?;
    drop(stream(&core, "first", None)?);
    witness.disk.plan(Fault::halt(On::Op(Op::Write), 1, Moment::After));
    let created = core.open_stream("s", None, now()).is_ok();
    ensure(!created, Kind::Unexpected, || "a stream was created without a write".to_owned())?;
    witness.disk = witness.disk.kill();
    core.abandon();
    let core = witness.open()?;
    if !core.names().contains(&"s".to_owned()) {
        return Ok(());
    }
    let left = stream(&core, "s", None)?;
    witness.fill(&left, 1)?;
    let end = left.log().ends().durable;
    drop(left);
    witness.cut(core);
    let core = witness.open()?;
    ensure(core.names().contains(&"s".to_owned()), Kind::Lost, || {
        "a stream with records is gone".to_owned()
    })?;
    let kept = stream(&core, "s", None)?.log().ends().durable;
    ensure(kept == end, Kind::Lost, || format!("a stream was durable up to {end}, and is up to {kept}"))
}

/// A lost segment is told by the open that finds it, and by none after that; its gap is delivered once.
fn losses_are_told_once(mut witness: Witness) -> Checked {
    let core = witness.open()?;
    let names = ["a", "b"];
    let mut lost = Vec::new();
    for name in names {
        let stream = stream(&core, name, None)?;
        witness.fill(&stream, 3)?;
        lost.push(segment(&stream, 2));
    }
    witness.cut(core);
    for path in &lost {
        let is_there = witness.disk.files().contains(path);
        ensure(is_there, Kind::Lost, || format!("a segment that was rotated is gone: {}", path.display()))?;
        witness.meddle(path, |disk| disk.remove_file(path))?;
    }
    let told = |core: &Core| core.report().streams.iter().map(|stream| stream.gaps.len()).sum::<usize>();
    let core = witness.open()?;
    let first = told(&core);
    ensure(first == names.len(), Kind::Lost, || {
        format!("two segments are missing, {first} losses were told")
    })?;
    witness.cut(core);
    let core = witness.open()?;
    let again = told(&core);
    ensure(again == 0, Kind::FalseAlarm, || format!("{again} losses were told again"))?;
    for name in names {
        let gaps = gaps_delivered(&core, name)?;
        ensure(gaps == 1, Kind::FalseAlarm, || format!("one gap is to be delivered, {gaps} were"))?;
    }
    Ok(())
}

fn gaps_delivered(core: &Core, name: &str) -> Checked<usize> {
    let stream = stream(core, name, None)?;
    let opened = core.open_consumer(&stream, "c", Start::Oldest, now());
    let consumer = opened.map_err(unexpected("open a consumer"))?;
    let (mut gaps, mut buffers) = (0, Default::default());
    while let Some(delivery) =
        core.next(&stream, &consumer, 1 << 20, &mut buffers, now()).map_err(unexpected("read"))?
    {
        gaps += delivery.gaps().count();
    }
    Ok(gaps)
}

/// A file that is not the queue's, under a segment's name, is not lost by opening, whatever the power does.
fn planted_files_stay(mut witness: Witness) -> Checked {
    let core = witness.open()?;
    let stream = stream(&core, "s", None)?;
    witness.fill(&stream, 2)?;
    let (source, planted) = (segment(&stream, 1), segment(&stream, 9));
    let stored = (stream.first(), stream.log().ends().durable);
    drop(stream);
    witness.cut(core);
    let bytes = witness.disk.read(&source);
    witness.meddle(&planted, |disk| {
        let file = disk.create(&planted)?;
        file.write_all_at(&[IoSlice::new(&bytes)], 0)?;
        file.sync_data(SITE)
    })?;
    for _ in 0..2 {
        let core = witness.open()?;
        let opened = self::stream(&core, "s", None)?;
        let (found, losses) = ((opened.first(), opened.log().ends().durable), opened.losses());
        drop(opened);
        witness.cut(core);
        ensure(found == stored && losses.is_empty(), Kind::Lost, || {
            format!("beside a planted file there is {found:?} of {stored:?}, lost {losses:?}")
        })?;
        let files = witness.disk.files();
        let kept = files.iter().any(|path| *path != source && witness.disk.read(path) == bytes);
        ensure(kept, Kind::Lost, || "a planted file is neither at its place nor in quarantine".to_owned())?;
    }
    Ok(())
}

/// Neither a stream's id nor its incarnation is given again, though nothing in the catalog names it any more.
fn ids_are_new(mut witness: Witness) -> Checked {
    let mut seen = Vec::new();
    let core = witness.open()?;
    drop(stream(&core, "stays", None)?);
    witness.cut(core);
    for round in 1..4 {
        let core = witness.open()?;
        let passing = stream(&core, "passes", None)?;
        let identity = passing.log().context().identity;
        let known = seen.iter().any(|(id, life)| *id == identity.stream || *life == identity.incarnation);
        ensure(!known, Kind::Resurrected, || format!("the id {} was given before", identity.stream))?;
        seen.push((identity.stream, identity.incarnation));
        witness.fill(&passing, 1)?;
        core.remove_stream("passes", now()).map_err(unexpected("delete a stream"))?;
        witness.cut(core);
        // The first save of a run writes a whole catalog.
        let core = witness.open()?;
        let settings = StreamSettings { batch_records_max: round, ..StreamSettings::default() };
        drop(stream(&core, "stays", Some(&settings))?);
        witness.cut(core);
    }
    Ok(())
}

/// A consumer whose creation failed is gone with its stream, although what the failed save wrote may stand on the disk.
fn failed_creations_do_not_outlive_their_stream(mut witness: Witness) -> Checked {
    let core = witness.open()?;
    let stays = stream(&core, "stays", None)?;
    // The first save of a run writes a whole generation; the next is appended to it.
    let kept = core.open_consumer(&stays, "c", Start::Oldest, now());
    let kept = kept.map_err(unexpected("open a consumer"))?;
    let passing = stream(&core, "passes", None)?;
    witness.disk.plan(Fault::once(On::Site(SyncSite::new("cursors.create")), 1, errno::EIO));
    if core.open_consumer(&passing, "c", Start::Oldest, now()).is_ok() {
        // That sync is switched off, so nothing failed: others look for what its loss costs.
        drop((stays, kept, passing));
        core.abandon();
        return Ok(());
    }
    drop(passing);
    core.remove_stream("passes", now()).map_err(unexpected("delete a stream"))?;
    drop((stays, kept));
    witness.cut(core);
    let core = witness.open()?;
    let note = core.report().notes.first();
    ensure(note.is_none(), Kind::FalseAlarm, || format!("after a failed creation: {note:?}"))
}
