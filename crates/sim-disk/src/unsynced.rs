//! What is not on the medium yet: finding it, naming it, writing a part of it back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::file_node::{FileNode, Order};
use crate::pages::Pages;
use crate::power::{Loose, Survival, Unsynced, What};
use crate::tree::{Ino, NameChange, Node, ROOT};
use crate::world::World;

/// Whether older changes of the same names come along: in a power cut the chooser decides of each alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    Ignored,
    Included,
}

impl World {
    /// With words, for people and choosers; indexes are those of [`Survival`].
    pub(crate) fn unsynced(&self) -> Vec<Unsynced> {
        let paths = self.paths();
        let path = |ino| match paths.get(&ino) {
            Some(path) => path.display().to_string(),
            None => format!("(unlinked file {ino})"),
        };
        let changes: BTreeMap<Order, &NameChange> =
            self.tree.pending.iter().map(|pending| (pending.order, &pending.change)).collect();
        let text = |loose: &Loose| match loose.what {
            What::Name => {
                changes.get(&loose.order).map_or_else(String::new, |change| describe(change, &path))
            }
            What::Length { ino, len } => format!("length {len} of {}", path(ino)),
            What::Sector { ino, sector } => format!("sector {sector} of {}", path(ino)),
        };
        self.loose().iter().map(|loose| Unsynced { what: loose.what, text: text(loose) }).collect()
    }

    /// Brings the chosen part to the medium.
    pub(crate) fn write_back(&mut self, survival: &Survival, ground: Ground) {
        let mut names: BTreeSet<Order> = BTreeSet::new();
        for (index, loose) in self.loose().into_iter().enumerate() {
            if !survival.keeps(index) {
                continue;
            }
            let ino = match loose.what {
                What::Name => {
                    names.insert(loose.order);
                    continue;
                }
                What::Length { ino, .. } | What::Sector { ino, .. } => ino,
            };
            let Ok(file) = self.tree.file_mut(ino) else { continue };
            match loose.what {
                What::Length { len, .. } => file.write_back_len(loose.order, len),
                What::Sector { sector, .. } => file.write_back(sector),
                What::Name => {}
            }
        }
        match ground {
            Ground::Ignored => self.tree.persist(|order| names.contains(&order)),
            Ground::Included => self.tree.persist_with_ground(|pending| names.contains(&pending.order)),
        }
    }

    /// Runs on the file that a test names.
    pub(crate) fn with_file<T>(&mut self, path: &Path, run: impl FnOnce(&mut FileNode) -> T) -> T {
        let found = self.tree.resolve(path).and_then(|ino| self.tree.file_mut(ino));
        match found {
            Ok(file) => run(file),
            Err(errno) => panic!("no file {}: {}", path.display(), std::io::Error::from_raw_os_error(errno)),
        }
    }

    /// A path for each node that has one.
    pub(crate) fn paths(&self) -> BTreeMap<Ino, PathBuf> {
        let mut paths = BTreeMap::from([(ROOT, PathBuf::new())]);
        let mut todo = vec![ROOT];
        while let Some(ino) = todo.pop() {
            let (Ok(dir), Some(at)) = (self.tree.dir(ino), paths.get(&ino).cloned()) else { continue };
            for (name, child) in &dir.cache {
                if paths.insert(*child, at.join(name)).is_none() {
                    todo.push(*child);
                }
            }
        }
        paths
    }

    fn loose(&self) -> Vec<Loose> {
        let mut all: Vec<Loose> = self
            .tree
            .pending
            .iter()
            .map(|pending| Loose { order: pending.order, what: What::Name })
            .collect();
        for (&ino, node) in &self.tree.nodes {
            let Node::File(file) = node else { continue };
            all.extend(
                file.lengths.iter().map(|&(order, len)| Loose { order, what: What::Length { ino, len } }),
            );
            all.extend(
                file.dirty
                    .iter()
                    .map(|(&sector, &order)| Loose { order, what: What::Sector { ino, sector } }),
            );
        }
        all.sort_unstable();
        all
    }
}

pub(crate) fn bytes_of(pages: &Pages, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    pages.read(0, &mut bytes);
    bytes
}

fn describe(change: &NameChange, path: &dyn Fn(Ino) -> String) -> String {
    let name_in = |dir: &Ino, name: &std::ffi::OsStr| match path(*dir).as_str() {
        "" => name.to_string_lossy().into_owned(),
        dir => format!("{dir}/{}", name.to_string_lossy()),
    };
    match change {
        NameChange::Add { dir, name, .. } => format!("new name {}", name_in(dir, name)),
        NameChange::Remove { dir, name } => format!("removal of {}", name_in(dir, name)),
        NameChange::Move { from_dir, from, to_dir, to, .. } => {
            format!("rename of {} to {}", name_in(from_dir, from), name_in(to_dir, to))
        }
    }
}
