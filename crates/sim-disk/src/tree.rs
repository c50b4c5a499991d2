//! The names: directories as the process sees them, as the medium has them, and the changes between the two.
//!
//! A change of a name is pending until its directory is synced. A power cut keeps any subset of the pending changes,
//! applied in their order. A rename is one change: it survives whole or not at all.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};
use std::sync::Arc;

use crate::errno::{EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENOTEMPTY};
use crate::file_node::{FileNode, Order};

/// A system error's number.
pub(crate) type Errno = i32;
/// Which node, for the life of the disk.
pub(crate) type Ino = u64;

pub(crate) const ROOT: Ino = 1;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    File(Arc<FileNode>),
    Dir(DirNode),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DirNode {
    pub(crate) cache: BTreeMap<OsString, Ino>,
    medium: BTreeMap<OsString, Ino>,
}

/// A change of names that no sync covered yet.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) order: Order,
    pub(crate) change: NameChange,
}

#[derive(Clone, Debug)]
pub(crate) enum NameChange {
    Add { dir: Ino, name: OsString, ino: Ino },
    Remove { dir: Ino, name: OsString },
    Move { from_dir: Ino, from: OsString, to_dir: Ino, to: OsString, ino: Ino },
}

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: BTreeMap<Ino, Node>,
    pub(crate) pending: Vec<Pending>,
    next_ino: Ino,
    sweep_at: usize,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let nodes = BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]);
        Self { nodes, pending: Vec::new(), next_ino: ROOT + 1, sweep_at: 64 }
    }

    /// The node a path names.
    pub(crate) fn resolve(&self, path: &Path) -> Result<Ino, Errno> {
        let mut at = ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else { return Err(EINVAL) };
            at = *self.dir(at)?.cache.get(name).ok_or(ENOENT)?;
        }
        Ok(at)
    }

    /// The directory a path's last name stands in, and that name.
    pub(crate) fn parent<'a>(&self, path: &'a Path) -> Result<(Ino, &'a OsStr), Errno> {
        if path.components().any(|component| !matches!(component, Component::Normal(_))) {
            return Err(EINVAL);
        }
        let name = path.file_name().ok_or(EINVAL)?;
        let dir = self.resolve(path.parent().unwrap_or(Path::new("")))?;
        self.dir(dir)?;
        Ok((dir, name))
    }

    pub(crate) fn dir(&self, ino: Ino) -> Result<&DirNode, Errno> {
        match self.nodes.get(&ino) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(ENOTDIR),
            None => Err(ENOENT),
        }
    }

    pub(crate) fn file(&self, ino: Ino) -> Result<&FileNode, Errno> {
        match self.nodes.get(&ino) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(EISDIR),
            None => Err(ENOENT),
        }
    }

    pub(crate) fn file_mut(&mut self, ino: Ino) -> Result<&mut FileNode, Errno> {
        match self.nodes.get_mut(&ino) {
            Some(Node::File(file)) => Ok(Arc::make_mut(file)),
            Some(Node::Dir(_)) => Err(EISDIR),
            None => Err(ENOENT),
        }
    }

    pub(crate) fn create_file(&mut self, path: &Path, order: Order) -> Result<Ino, Errno> {
        let (dir, name) = self.vacant(path)?;
        let ino = self.insert(Node::File(Arc::default()));
        self.add(dir, name, ino, order)?;
        Ok(ino)
    }

    pub(crate) fn create_dir(&mut self, path: &Path, order: Order) -> Result<(), Errno> {
        let (dir, name) = self.vacant(path)?;
        let ino = self.insert(Node::Dir(DirNode::default()));
        self.add(dir, name, ino, order)
    }

    pub(crate) fn link(&mut self, from: &Path, to: &Path, order: Order) -> Result<(), Errno> {
        let (from_dir, from_name) = self.parent(from)?;
        let ino = *self.dir(from_dir)?.cache.get(from_name).ok_or(ENOENT)?;
        self.file(ino).map_err(|_| ELOOP)?;
        let (dir, name) = self.vacant(to)?;
        self.add(dir, name, ino, order)
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path, order: Order) -> Result<(), Errno> {
        let (at, ino) = (self.parent(from)?, self.resolve(from)?);
        let to_at = self.vacant(to)?;
        if to.starts_with(from) {
            return Err(EINVAL);
        }
        self.go(at, to_at, ino, order)
    }

    /// As `rename`, over a file that loses its name in the same change.
    pub(crate) fn replace(&mut self, from: &Path, to: &Path, order: Order) -> Result<(), Errno> {
        let (at, to_at) = (self.parent(from)?, self.parent(to)?);
        let (ino, old) = (self.resolve(from)?, self.resolve(to)?);
        self.file(ino).and(self.file(old))?;
        if ino == old {
            return Ok(());
        }
        self.file_mut(old)?.link_count -= 1;
        self.go(at, to_at, ino, order)
    }

    fn go(&mut self, from: (Ino, &OsStr), to: (Ino, &OsStr), ino: Ino, order: Order) -> Result<(), Errno> {
        let ((from_dir, from), (to_dir, to)) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
        self.dir_mut(from_dir)?.cache.remove(&from);
        self.dir_mut(to_dir)?.cache.insert(to.clone(), ino);
        self.pending.push(Pending { order, change: NameChange::Move { from_dir, from, to_dir, to, ino } });
        Ok(())
    }

    pub(crate) fn remove_file(&mut self, path: &Path, order: Order) -> Result<(), Errno> {
        let (dir, name) = self.parent(path)?;
        let ino = *self.dir(dir)?.cache.get(name).ok_or(ENOENT)?;
        self.file_mut(ino)?.link_count -= 1;
        self.remove(dir, name, order)
    }

    pub(crate) fn remove_dir(&mut self, path: &Path, order: Order) -> Result<(), Errno> {
        let (dir, name) = self.parent(path)?;
        let ino = *self.dir(dir)?.cache.get(name).ok_or(ENOENT)?;
        if !self.dir(ino)?.cache.is_empty() {
            return Err(ENOTEMPTY);
        }
        self.remove(dir, name, order)
    }

    /// Makes the pending changes of a directory durable, and what they rest on.
    pub(crate) fn sync_dir(&mut self, dir: Ino) {
        self.persist_with_ground(|pending| pending.change.names().iter().flatten().any(|(of, _)| *of == dir));
        self.sweep_now_and_then();
    }

    /// Makes the wanted pending changes durable, and the older ones they rest on: else such an older change would be
    /// applied on top of a newer one some day.
    pub(crate) fn persist_with_ground(&mut self, mut is_wanted: impl FnMut(&Pending) -> bool) {
        let mut names: HashSet<(Ino, OsString)> = HashSet::new();
        let mut taken: BTreeSet<Order> = BTreeSet::new();
        for pending in self.pending.iter().rev() {
            let touched: Vec<(Ino, OsString)> = pending
                .change
                .names()
                .into_iter()
                .flatten()
                .map(|(dir, name)| (dir, name.to_owned()))
                .collect();
            if is_wanted(pending) || touched.iter().any(|name| names.contains(name)) {
                taken.insert(pending.order);
                names.extend(touched);
            }
        }
        self.persist(|order| taken.contains(&order));
    }

    /// Applies the chosen pending changes to the medium, in order; the others stay pending.
    pub(crate) fn persist(&mut self, mut is_chosen: impl FnMut(Order) -> bool) {
        for pending in std::mem::take(&mut self.pending) {
            if is_chosen(pending.order) {
                self.apply_to_medium(pending.change);
            } else {
                self.pending.push(pending);
            }
        }
    }

    /// The power is back: the medium's names are all there are, and what no name reaches is gone.
    pub(crate) fn restart(&mut self) {
        self.pending.clear();
        for node in self.nodes.values_mut() {
            match node {
                Node::Dir(dir) => dir.cache = dir.medium.clone(),
                Node::File(file) => {
                    let file = Arc::make_mut(file);
                    file.restart();
                    file.link_count = 0;
                }
            }
        }
        self.sweep();
        let named: Vec<Ino> = self.dirs().flat_map(|dir| dir.cache.values().copied()).collect();
        for ino in named {
            if let Ok(file) = self.file_mut(ino) {
                file.link_count += 1;
            }
        }
    }

    /// Pages in use, as a full disk counts them.
    pub(crate) fn page_count(&self) -> u64 {
        self.nodes
            .values()
            .map(|node| match node {
                Node::File(file) if file.link_count + file.handle_count > 0 => file.cache.page_count(),
                _ => 0,
            })
            .sum()
    }

    fn dirs(&self) -> impl Iterator<Item = &DirNode> {
        self.nodes.values().filter_map(|node| match node {
            Node::Dir(dir) => Some(dir),
            Node::File(_) => None,
        })
    }

    fn dir_mut(&mut self, ino: Ino) -> Result<&mut DirNode, Errno> {
        match self.nodes.get_mut(&ino) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(ENOTDIR),
            None => Err(ENOENT),
        }
    }

    fn vacant<'a>(&self, path: &'a Path) -> Result<(Ino, &'a OsStr), Errno> {
        let (dir, name) = self.parent(path)?;
        if self.dir(dir)?.cache.contains_key(name) { Err(EEXIST) } else { Ok((dir, name)) }
    }

    fn insert(&mut self, node: Node) -> Ino {
        let ino = self.next_ino;
        self.next_ino += 1;
        self.nodes.insert(ino, node);
        ino
    }

    fn add(&mut self, dir: Ino, name: &OsStr, ino: Ino, order: Order) -> Result<(), Errno> {
        let name = name.to_owned();
        self.dir_mut(dir)?.cache.insert(name.clone(), ino);
        if let Ok(file) = self.file_mut(ino) {
            file.link_count += 1;
        }
        self.pending.push(Pending { order, change: NameChange::Add { dir, name, ino } });
        Ok(())
    }

    fn remove(&mut self, dir: Ino, name: &OsStr, order: Order) -> Result<(), Errno> {
        self.dir_mut(dir)?.cache.remove(name);
        self.pending.push(Pending { order, change: NameChange::Remove { dir, name: name.to_owned() } });
        Ok(())
    }

    fn apply_to_medium(&mut self, change: NameChange) {
        match change {
            NameChange::Add { dir, name, ino } => self.put_on_medium(dir, name, ino),
            NameChange::Remove { dir, name } => {
                if let Ok(dir) = self.dir_mut(dir) {
                    dir.medium.remove(&name);
                }
            }
            NameChange::Move { from_dir, from, to_dir, to, ino } => {
                if let Ok(dir) = self.dir_mut(from_dir) {
                    dir.medium.remove(&from);
                }
                self.put_on_medium(to_dir, to, ino);
            }
        }
    }

    fn put_on_medium(&mut self, dir: Ino, name: OsString, ino: Ino) {
        if let Ok(dir) = self.dir_mut(dir) {
            dir.medium.insert(name, ino);
        }
    }

    fn sweep_now_and_then(&mut self) {
        if self.nodes.len() >= self.sweep_at {
            self.sweep();
            self.sweep_at = 64 + 2 * self.nodes.len();
        }
    }

    /// Forgets nodes that no name, pending change or handle can reach.
    fn sweep(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        let mut todo = vec![ROOT];
        todo.extend(self.pending.iter().filter_map(|pending| pending.change.ino()));
        todo.extend(self.nodes.iter().filter_map(|(ino, node)| match node {
            Node::File(file) if file.handle_count > 0 => Some(*ino),
            _ => None,
        }));
        reached.extend(&todo);
        while let Some(ino) = todo.pop() {
            let Ok(dir) = self.dir(ino) else { continue };
            let children: Vec<Ino> = dir.cache.values().chain(dir.medium.values()).copied().collect();
            todo.extend(children.into_iter().filter(|child| reached.insert(*child)));
        }
        self.nodes.retain(|ino, _| reached.contains(ino));
    }
}

impl NameChange {
    /// The one or two names it changes.
    fn names(&self) -> [Option<(Ino, &OsStr)>; 2] {
        match self {
            Self::Add { dir, name, .. } | Self::Remove { dir, name } => [Some((*dir, name)), None],
            Self::Move { from_dir, from, to_dir, to, .. } => [Some((*from_dir, from)), Some((*to_dir, to))],
        }
    }

    fn ino(&self) -> Option<Ino> {
        match self {
            Self::Add { ino, .. } | Self::Move { ino, .. } => Some(*ino),
            Self::Remove { .. } => None,
        }
    }
}
