//! File patterns: `*`, `?`, `[a-z]` within a name, `**` for any number of folders. Names are bytes, not text.
//!
//! Not a shell: no braces, no `~`, and a leading dot is matched only by a dot.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A path pattern, absolute or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    root: PathBuf,
    parts: Vec<Vec<u8>>,
}

impl PathPattern {
    /// Parses a pattern, taken from `base` if it is relative.
    pub(crate) fn new(base: &Path, pattern: &str) -> Self {
        let full = base.join(pattern);
        let mut root = PathBuf::new();
        let mut parts = Vec::new();
        for component in full.components() {
            match component {
                Component::Normal(name) if !parts.is_empty() || has_magic(name.as_bytes()) => {
                    parts.push(name.as_bytes().to_vec());
                }
                Component::CurDir if !parts.is_empty() => {}
                Component::ParentDir if !parts.is_empty() => parts.push(b"..".to_vec()),
                other => root.push(other.as_os_str()),
            }
        }
        if root.as_os_str().is_empty() {
            root.push(".");
        }
        Self { root, parts }
    }

    /// Every file that matches, in the order of names.
    pub(crate) fn expand(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.root, &self.parts, &mut found);
        found.sort();
        found.dedup();
        found
    }

    /// Whether this path would match, whether or not it exists.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.root) else { return false };
        let names: Vec<&[u8]> = rest.components().map(|part| part.as_os_str().as_bytes()).collect();
        matches_names(&self.parts, &names)
    }

    /// Whether it is a plain path.
    pub(crate) fn names_one_file(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether something stands under a plain path.
    pub(crate) fn exists(&self) -> bool {
        self.names_one_file() && self.root.exists()
    }

    /// Folders in which its files stand: where a file that was renamed is looked for.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let Some((_, folder_parts)) = self.parts.split_last() else {
            return self.root.parent().map(Path::to_path_buf).into_iter().collect();
        };
        let mut found = Vec::new();
        walk_folders(&self.root, folder_parts, &mut found);
        found
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.iter().map(|part| OsStr::from_bytes(part));
        write!(f, "{}", parts.fold(self.root.clone(), |path, part| path.join(part)).display())
    }
}

fn has_magic(name: &[u8]) -> bool {
    name.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

fn matches_names(parts: &[Vec<u8>], names: &[&[u8]]) -> bool {
    match parts.split_first() {
        None => names.is_empty(),
        Some((part, rest)) if part == b"**" => (0..=names.len()).any(|at| matches_names(rest, &names[at..])),
        Some((part, rest)) => names
            .split_first()
            .is_some_and(|(name, names)| matches_name(part, name) && matches_names(rest, names)),
    }
}

fn walk(folder: &Path, parts: &[Vec<u8>], found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else {
        if folder.is_file() || (folder.exists() && !folder.is_dir()) {
            found.push(folder.to_path_buf());
        }
        return;
    };
    if part == b"**" {
        walk(folder, rest, found);
        for sub in entries(folder).filter(|sub| is_own_folder(sub)) {
            walk(&sub, parts, found);
        }
    } else if has_magic(part) {
        let matching =
            entries(folder).filter(|path| path.file_name().is_some_and(|n| matches_name(part, n.as_bytes())));
        for path in matching.filter(|path| rest.is_empty() || path.is_dir()) {
            walk(&path, rest, found);
        }
    } else {
        walk(&folder.join(OsStr::from_bytes(part)), rest, found);
    }
}

fn walk_folders(folder: &Path, parts: &[Vec<u8>], found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else {
        if folder.is_dir() {
            found.push(folder.to_path_buf());
        }
        return;
    };
    if part == b"**" {
        walk_folders(folder, rest, found);
        for sub in entries(folder).filter(|sub| is_own_folder(sub)) {
            walk_folders(&sub, parts, found);
        }
    } else if has_magic(part) {
        for sub in
            entries(folder).filter(|sub| sub.file_name().is_some_and(|n| matches_name(part, n.as_bytes())))
        {
            walk_folders(&sub, rest, found);
        }
    } else {
        walk_folders(&folder.join(OsStr::from_bytes(part)), rest, found);
    }
}

/// Links to folders are not followed under `**`: they can lead in a circle.
fn is_own_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
        && path.file_name().is_some_and(|name| !name.as_bytes().starts_with(b"."))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path())
}

/// Whether one name matches one pattern without `/`.
pub(crate) fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    // The usual backtracking to the last star: linear in practice, never exponential.
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(next) = matches_one(pattern, p, name[n]) {
            p = next;
            n += 1;
        } else if let Some((star_p, star_n)) = star {
            p = star_p + 1;
            n = star_n + 1;
            star = Some((star_p, star_n + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Where the pattern goes on if its element at `p` matches this byte.
fn matches_one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => matches_set(pattern, p, byte),
        literal => (literal == byte).then_some(p + 1),
    }
}

fn matches_set(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    let body = &pattern[p + 1..];
    let negated = matches!(body.first(), Some(b'!' | b'^'));
    let from = usize::from(negated);
    // A `]` that comes first stands for itself.
    let Some(close) = body.iter().skip(from + 1).position(|b| *b == b']').map(|at| at + from + 1) else {
        return (byte == b'[').then_some(p + 1);
    };
    let set = &body[from..close];
    let mut inside = false;
    let mut at = 0;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == b'-' {
            inside |= (set[at]..=set[at + 2]).contains(&byte);
            at += 3;
        } else {
            inside |= set[at] == byte;
            at += 1;
        }
    }
    (inside != negated).then_some(p + 1 + close + 1)
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
