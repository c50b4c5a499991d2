//! stub
use crate::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
/// The real disk.
#[derive(Debug)]
pub struct OsDisk;
#[expect(clippy::todo, missing_docs, unused_variables, clippy::missing_errors_doc, reason = "stub")]
impl OsDisk {
    pub fn open(root: &Path) -> Result<Self, DiskError> {
        todo!()
    }
    pub fn create(root: &Path) -> Result<Self, DiskError> {
        todo!()
    }
}
#[expect(clippy::todo, unused_variables, reason = "stub")]
impl Disk for OsDisk {
    fn create(&self, path: &Path) -> Result<Arc<dyn File>, DiskError> {
        todo!()
    }
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>, DiskError> {
        todo!()
    }
    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn sync_dir(&self, path: &Path, site: SyncSite) -> Result<(), DiskError> {
        todo!()
    }
    fn link(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        todo!()
    }
    fn list(
        &self,
        path: &Path,
        visit: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), DiskError> {
        todo!()
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        todo!()
    }
    fn space(&self) -> Result<Space, DiskError> {
        todo!()
    }
    fn stat(&self, path: &Path) -> Result<FileStat, DiskError> {
        todo!()
    }
    fn file_system(&self) -> Result<FileSystem, DiskError> {
        todo!()
    }
}
