//! Which operation is which function.

use std::time::Duration;

use super::World;
use crate::operation::{Load, Operation, Whose};
use crate::violation::Checked;

/// The first batch of a file is synced at every setting: what stands behind it is what counts.
pub(crate) const KEPT_UP_ROUNDS: usize = 2;

impl World {
    pub(super) fn execute(&mut self, operation: &Operation) -> Checked {
        match operation {
            Operation::Append(stream, load) => self.append(self.at(*stream), *load),
            Operation::AppendBatch(stream, load) => self.append_batch(self.at(*stream), *load),
            Operation::AppendWaiting(stream, load) => self.append_waiting(self.at(*stream), *load),
            Operation::Bound(bound) => self.bound(*bound),
            Operation::Commit(stream) => self.commit(self.at(*stream), wal_store::Want::Batch),
            Operation::CommitDurable(stream) => self.commit(self.at(*stream), wal_store::Want::Durable),
            Operation::Wait(stream) => self.wait(self.at(*stream)),
            Operation::Rotate(stream) => self.rotate(self.at(*stream)),
            Operation::Read(whose, bytes) => {
                self.read(self.at(whose.stream), self.pull(whose.reader), usize::from(*bytes) + 1)
            }
            Operation::Ack(whose, back) => self.ack(self.at(whose.stream), self.pull(whose.reader), *back),
            Operation::KeepUp(whose, load) => self.keep_up(*whose, *load),
            Operation::AckAgain(whose) => self.ack_again(self.at(whose.stream), self.pull(whose.reader)),
            Operation::Turn(end) => self.turn(*end),
            Operation::Seek(whose, share) => {
                self.seek(self.at(whose.stream), self.pull(whose.reader), *share)
            }
            Operation::Retake(whose) => self.retake(self.at(whose.stream), self.pull(whose.reader)),
            Operation::RemoveReader(whose) => {
                self.remove_reader(self.at(whose.stream), self.reader(whose.reader))
            }
            Operation::CreateReader(whose) => {
                self.create_reader(self.at(whose.stream), self.reader(whose.reader))
            }
            Operation::CreateStream(stream) => self.create_stream(self.at(*stream)),
            Operation::DeleteStream(stream) => self.delete_stream(self.at(*stream)),
            Operation::Tick => self.tick(),
            Operation::Timers => self.timers(),
            Operation::Pass(micros) => {
                self.pass(Duration::from_micros(u64::from(*micros)));
                Ok(())
            }
            Operation::WallJump(hours) => {
                self.jump(*hours);
                Ok(())
            }
            Operation::WriteBack(survival) => {
                self.disk.write_back(survival);
                Ok(())
            }
            Operation::Fault(fault) => {
                self.expect_trouble();
                self.disk.plan(fault.clone());
                Ok(())
            }
            Operation::Limit(limit) => {
                self.limit(*limit);
                Ok(())
            }
            Operation::Heal => {
                self.heal();
                Ok(())
            }
            Operation::Close => self.close(),
            Operation::Repair(repair) => self.repair(repair),
            Operation::Crash(crash) => self.end(crash.clone()),
            Operation::CrashAt { call, moment, crash } => {
                if self.crash.is_none() {
                    self.disk.plan(sim_disk::Fault::halt(sim_disk::On::Any, *call, *moment));
                    self.crash = Some(crash.clone());
                }
                Ok(())
            }
        }
    }

    /// Random operations seldom meet in this order, and a cursor ahead of the disk needs just that.
    fn keep_up(&mut self, whose: Whose, load: Load) -> Checked {
        let stream = whose.stream;
        let round = [
            Operation::Append(stream, load),
            Operation::Commit(stream),
            Operation::Read(whose, 4000),
            Operation::Ack(whose, 0),
        ];
        let rounds = std::iter::repeat_n(round.iter(), KEPT_UP_ROUNDS).flatten();
        for operation in rounds.chain([&Operation::Tick]) {
            self.execute(operation)?;
            if self.is_dead() {
                return Ok(());
            }
            self.look_at_tickets()?;
        }
        Ok(())
    }
}
